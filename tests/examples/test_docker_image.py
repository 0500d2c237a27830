"""The agent of the Docker example as a program of this machine; `tests/docker` has it as an image."""

import sys
from pathlib import Path

from playhead import examples
from playhead.tests.support.process import playhead
from playhead.tests.support.shop import shop

AGENT = Path(examples.__file__).with_name("docker_image") / "agent.py"


def test_the_agent_is_recorded_and_replayed(tmp_path: Path) -> None:
    """With model and shop gone, it says the same; another question is red."""

    def run(*words: str, env: dict[str, str], question: str = "What is item 1?") -> tuple[int, str]:
        done = playhead(
            *words, "--store", tmp_path / "s", "--", sys.executable, str(AGENT), question, env=env
        )
        return done.returncode, done.stdout

    with shop() as env:
        assert run("record", "--run", "shop", env=env) == (0, "Item 1 is a chair.\n")
    words = ("replay", "shop", "--no-sandbox")
    assert run(*words, env=env) == (0, "Item 1 is a chair.\n")
    assert run(*words, env=env, question="What is item 2?") == (121, "")
