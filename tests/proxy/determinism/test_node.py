"""The preload under Node: what a program finds of time and chance is found again."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from playhead.tests.support.needs import need
from playhead.tests.support.preload_bundles import again, new_kit, run

AGENT = Path(__file__).parents[2] / "support" / "clock_reading" / "clock_reads.mjs"


@pytest.fixture(scope="module")
def node() -> str:
    """Node of this machine."""
    return need("node")


def test_what_is_found_of_time_and_chance_is_found_again(node: str) -> None:
    """By an ES module, its children and its worker, exactly."""
    preload_bundle = new_kit()
    recorded = run(preload_bundle, node, AGENT)
    assert recorded.err == ""
    for _ in range(2 if os.environ.get("PLAYHEAD_FULL") else 1):
        replayed = run(again(preload_bundle, recorded.rows), node, AGENT)
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
    preload_bundle = new_kit()
    code = "try { crypto.randomBytes(-1) } catch (error) { console.log(Date.now(), error.code) }"
    now, wrong = run(preload_bundle, node, "-e", code).out.split()
    assert 0 <= int(now) - preload_bundle.basis.start_ns // 1_000_000 < 60_000
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
    preload_bundle = new_kit()
    ran = [run(made, node, program) for made in (preload_bundle, again(preload_bundle, []))]
    assert [one.err for one in ran] == ["", ""]
    first, second = (one.out.splitlines() for one in ran)
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False]


def test_children_of_another_runtime_are_covered_too(node: str) -> None:
    """Python that Node starts, and Node that Python starts, with variables of their own."""
    preload_bundle = new_kit()
    python = "import subprocess, sys, time; print(time.time_ns()); sys.stdout.flush(); subprocess.run([sys.argv[1], '-p', 'Date.now()'], env={})"
    code = f"""require('child_process').spawnSync('python3', ['-c', {json.dumps(python)}, process.execPath],
        {{env: {{PATH: process.env.PATH}}, stdio: 'inherit'}})"""
    recorded = run(preload_bundle, node, "-e", code)
    replayed = run(again(preload_bundle, recorded.rows), node, "-e", code)
    assert len(recorded.out.split()) == 2, recorded.err
    assert replayed.out == recorded.out
    assert [one.split()[0] for one in recorded.told["runtimes"]] == ["node", "python"]


SURPRISES = {
    "options behind no arguments": (
        "const c = require('child_process');"
        "console.log(c.execFileSync('pwd', undefined, { encoding: 'utf8', cwd: '/' }).trim())",
        "/",
    ),
    "older names": (
        "const c = require('crypto'); console.log(c.rng === c.randomBytes, c.prng === c.randomBytes)",
        "true true",
    ),
    "a proxy that the program forgets": (
        "delete process.env.HTTPS_PROXY;"
        "require('http').get('http://127.0.0.1:9/').on('error', (error) => console.log(error.code))",
        "ECONNREFUSED",
    ),
}


@pytest.mark.parametrize("case", SURPRISES)
def test_a_program_is_not_broken_by_it(case: str, node: str) -> None:
    """Calls that are rare and right do what they do without it."""
    code, expected = SURPRISES[case]
    ran = run(new_kit(), node, "-e", code, HTTPS_PROXY="http://127.0.0.1:1")
    assert (ran.err, ran.out.strip()) == ("", expected)


def test_a_worker_with_variables_of_its_own_is_covered(node: str) -> None:
    """Without ours it would have a clock of its own, and nobody would know."""
    code = "const { Worker } = require('worker_threads'); new Worker('console.log(Date.now())', { eval: true, env: {} })"
    preload_bundle = new_kit()
    recorded = run(preload_bundle, node, "-e", code)
    assert run(again(preload_bundle, recorded.rows), node, "-e", code).out == recorded.out
    assert recorded.told["preloaded"] == 2


def test_agents_keep_their_timeouts(node: str) -> None:
    """On the way through the proxy too: a program that hangs is worse than one that fails."""
    client = """
        const agent = new (require('http').Agent)({ timeout: 50 });
        require('http').get('http://elsewhere.test/', { agent }).on('timeout', () => { console.log('timeout'); process.exit(); });
        setTimeout(() => process.exit(1), 10000);"""
    code = f"""
        const proxy = require('http').createServer();
        proxy.on('connect', (request, socket) => socket.write('HTTP/1.1 200 OK\\r\\n\\r\\n'));
        proxy.listen(0, '127.0.0.1', () => {{
          const env = {{ ...process.env, HTTPS_PROXY: `http://127.0.0.1:${{proxy.address().port}}` }};
          const options = {{ env, stdio: 'inherit' }};
          require('child_process').spawn(process.execPath, ['-e', {json.dumps(client)}], options)
            .on('exit', () => process.exit());
        }});"""
    assert run(new_kit(), node, "-e", code).out.strip() == "timeout"
