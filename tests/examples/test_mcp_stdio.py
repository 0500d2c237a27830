"""The agent with an MCP server on a pipe: recorded, and played with the server gone."""

import json
import shutil
import sys
from pathlib import Path

from playhead.examples import mcp_stdio
from playhead.tests.support.counts import FULL
from playhead.tests.support.process import COMMAND, playhead

FOLDER = Path(mcp_stdio.__file__).parent
RECORDED = """price order advise
mug: 3.00
ordered 3
ordered 2
ordered 1
advice: buy two
"""


def test_the_agent_plays_with_its_server_gone(tmp_path: Path) -> None:
    """The real SDK gets progress, parallel answers and a question of the server as recorded; another argument is red."""
    server, file = tmp_path / "server.py", tmp_path / "mcp.json"
    shutil.copy(FOLDER / "server.py", server)
    shipped = json.loads((FOLDER / "mcp.json").read_text())["mcpServers"]["shop"]
    before = shipped["args"][:3]
    assert [shipped["command"], *before] == ["playhead", "stdio", "--name", "shop"]
    program, *words = COMMAND
    shop = {"command": program, "args": [*words, *before, "--", sys.executable, str(server)]}
    file.write_text(json.dumps({"mcpServers": {"shop": shop}}))

    def run(*words: str | Path, item: str = "mug") -> tuple[int, str, str]:
        agent = [sys.executable, str(FOLDER / "agent.py"), item, str(file)]
        done = playhead(*words, "--store", tmp_path / "store", "--", *agent)
        return done.returncode, done.stdout, done.stderr

    code, recorded, err = run("record", "--run", "shop")
    # The three orders end as the machine has it, and in a replay as they did then.
    assert (code, sorted(recorded.splitlines())) == (0, sorted(RECORDED.splitlines())), err
    server.unlink()
    code, out, err = run("replay", "shop", "--no-sandbox")
    assert (code, out) == (0, recorded), err
    assert "FAITHFUL" in err
    assert "stdio.playhead.internal/shop" in err
    if not FULL:  # a start of each of its programs takes a second: as in journeys/test_stdio.py
        return
    code, out, err = run("replay", "shop", "--no-sandbox", item="teapot")
    assert code == 121
    assert """body $.params.arguments.item: recorded '"mug"', asked '"teapot"'""" in err
