"""The preload under Node: what a program finds of time and chance is found again."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from playhead.tests.support.kits import again, new_kit, run

AGENT = Path(__file__).parents[2] / "support" / "looking" / "looks.mjs"


@pytest.fixture(scope="module")
def node() -> str:
    """Node of this machine."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node on this machine")
    return found


def test_what_is_found_of_time_and_chance_is_found_again(node: str) -> None:
    """By an ES module, its children and its worker, exactly."""
    kit = new_kit()
    recorded = run(kit, node, AGENT)
    assert recorded.err == ""
    for _ in range(2 if os.environ.get("PLAYHEAD_FULL") else 1):
        replayed = run(again(kit, recorded.rows), node, AGENT)
        assert replayed.said == recorded.said
        assert replayed.told == recorded.told
    assert (recorded.told["processes"], recorded.told["preloaded"]) == (6, 6)
    assert (recorded.told["exhausted"], recorded.told["problems"]) == ([], [])


def test_without_it_nothing_is_found_again(node: str) -> None:
    """The control: all differs from run to run, but for what has seconds."""
    first, second = (
        json.loads(subprocess.run([node, str(AGENT)], capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    same = [one for one, other in zip(first, second, strict=True) if one == other]
    assert "1970-01-01T00:00:00.000Z" in same
    assert all(isinstance(one, str) and (":" in one) for one in same)


def test_a_recording_sees_the_real_clock(node: str) -> None:
    """To the millisecond, and arguments are checked as ever."""
    kit = new_kit()
    code = "try { crypto.randomBytes(-1) } catch (error) { console.log(Date.now(), error.code) }"
    now, wrong = run(kit, node, "-e", code).out.split()
    assert 0 <= int(now) - kit.basis.start_ns // 1_000_000 < 60_000
    assert wrong == "ERR_OUT_OF_RANGE"


def test_libraries_that_make_keys_get_the_kernels_randomness(node: str, tmp_path: Path) -> None:
    """Two signatures with one nonce give the key away; what others ask for comes again."""
    library = tmp_path / "node_modules" / "tweetnacl"
    library.mkdir(parents=True)
    draw = "const crypto = require('crypto');\n"
    draw += "module.exports = () => [crypto.randomBytes(8).toString('hex'), crypto.getRandomValues(new Uint8Array(8))].join();\n"
    (library / "index.js").write_text(draw)
    program = tmp_path / "agent.js"
    program.write_text(
        "console.log(require('crypto').randomUUID()); console.log(require('tweetnacl')());"
    )
    kit = new_kit()
    first, second = (run(made, node, program).out.splitlines() for made in (kit, again(kit, [])))
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False]


def test_children_of_another_runtime_are_covered_too(node: str) -> None:
    """Python that Node starts, and Node that Python starts, with variables of their own."""
    kit = new_kit()
    python = "import subprocess, sys, time; print(time.time_ns()); sys.stdout.flush(); subprocess.run([sys.argv[1], '-p', 'Date.now()'], env={})"
    code = f"""require('child_process').spawnSync('python3', ['-c', {json.dumps(python)}, process.execPath],
        {{env: {{PATH: process.env.PATH}}, stdio: 'inherit'}})"""
    recorded = run(kit, node, "-e", code)
    replayed = run(again(kit, recorded.rows), node, "-e", code)
    assert len(recorded.out.split()) == 2, recorded.err
    assert replayed.out == recorded.out
    assert [one.split()[0] for one in recorded.told["runtimes"]] == ["node", "python"]
