"""The Docker example: its image as it is built from the folder, recorded and replayed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead import examples
from playhead.tests.support.docker import docker
from playhead.tests.support.process import playhead
from playhead.tests.support.shop import shop

FOLDER = Path(examples.__file__).with_name("docker_image")
NAME = "playhead-shop-agent-test"


@pytest.fixture
def image() -> Iterator[str]:
    """The example's image."""
    docker("build", "--tag", NAME, FOLDER, env={"DOCKER_BUILDKIT": "0"})
    yield NAME
    docker("rmi", "--force", NAME)


def test_the_example_is_recorded_and_replayed_as_an_image(image: str, tmp_path: Path) -> None:
    """With model and shop gone: all of it exact, and no packet left."""
    given = ("--sandbox", "docker", "--image", image, "--store", tmp_path / "store", "--json")
    agent = ("--", "python", "agent.py", "What is item 1?")
    with shop() as env:
        flags = [word for name in env for word in ("--env", f"{name}={env[name]}")]
        recorded = playhead("record", "--run", "shop", *given, *flags, *agent)
    assert (recorded.returncode, recorded.stdout) == (0, "Item 1 is a chair.\n"), recorded.stderr
    replayed = playhead("replay", "shop", *given, *flags, *agent)
    assert (replayed.returncode, replayed.stdout) == (0, "Item 1 is a chair.\n"), replayed.stderr
    receipt = json.loads(replayed.stderr)
    assert (receipt["faithful"], receipt["matched"]) == (True, {"exact": 3})
    assert receipt["sandbox"]["counters"]["packets_out"] == 0
