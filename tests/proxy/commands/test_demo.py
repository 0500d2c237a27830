"""The demo's story is checked step by step, and leaves nothing behind."""

import importlib.util
import io
import json
import os
import py_compile
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from playhead.proxy.commands import demo
from playhead.tests.support import prepared

STAND_IN = textwrap.dedent(
    '''
    """Stands in for `playhead`: does what the story tells, except for `fault`."""

    import http.client, json, os, pathlib, sys, time
    from urllib.parse import urlsplit

    fault, verb, *words = sys.argv[1:]
    store = pathlib.Path(words[words.index("--store") + 1])
    tape = store / "said"
    fixed = words[-1].endswith("_fixed")
    url = "http://payments/v1/refunds"
    refund = {"method": "POST", "url": url}
    if verb == "record":
        for timeout in (0.1, 5) if fault != "one refund" else (0.1,):
            payments = http.client.HTTPConnection(
                urlsplit(os.environ["PAYMENTS_URL"]).netloc, timeout=timeout
            )
            body = json.dumps({"charge": "ch_1007", "amount": 4900})
            payments.request("POST", "/v1/refunds", body, {"content-type": "application/json"})
            try:
                payments.getresponse()
            except TimeoutError:
                pass
        store.mkdir(exist_ok=True)
        tape.write_text("agent     done\\n")
        print("agent     done", flush=True)
        if fault == "hang":
            time.sleep(60)
    elif verb == "branch":
        assert words[1:3] == ["--at", "5" if fixed else "6"], words
        said = json.loads(pathlib.Path(words[words.index("--answers" if fixed else "--answer") + 1]).read_text())
        given = said["answers"][0]["answer"]["json"]["data"][0] if fixed else said
        print("agent     refund", "re_2" if fault == "pays twice" else given["id"])
    elif verb == "show":
        print(json.dumps({"response": {"body": json.dumps({"id": "re_1"})}}))
    elif verb == "replay":
        print("agent     human" if fixed or fault == "other words" else "agent     done")
        print("the receipt", file=sys.stderr)
        if fault == "no tape":
            sys.exit(125)
        sys.exit(121 if fixed else 0)
    else:
        run = words[0]
        first = dict(refund, seq=5, summary="\\x1b[31mred", note="")
        second = dict(refund, seq=7, note="possible duplicate of 5")
        if fault == "no note":
            second["note"] = ""
        same = run.endswith("@1")
        receipt = {"run": run, "parent": run[:-2], "faithful": same}
        receipt["counts"] = {"live": 0, "refused": 0, "unused": 0}
        receipt["effects"] = [first, second] if same else [first]
        receipt["unused"] = [] if same else [dict(refund, seq=7)]
        if run[-1] in "34":
            receipt["counts"] = {"hypothetical": 1, "live": 1, "refused": 0, "stubbed": 0}
            if run.endswith("@4"):
                note = "" if fault == "no retry" else "safe retry of seq 4"
                receipt["effects"] = [first, dict(second, note=note)]
        asked = {"kind": "unexpected", "seq": 6, "method": "GET", "url": url + "?charge=ch_1007"}
        asked["differences"] = [{"place": "path", "recorded": "a", "asked": "b"}]
        receipt["divergences"] = [] if same or fault == "silent" else [asked]
        print(json.dumps(receipt))
    '''
)


@pytest.fixture
def stand_in(tmp_path: Path) -> list[str]:
    """Command that stands in for `playhead`, less its fault."""
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    return [sys.executable, "-S", "-E", str(script)]


def test_a_story_that_goes_as_told_ends_with_0(stand_in: list[str], tmp_path: Path) -> None:
    """Every step is told, recorded text is made harmless, no process and no folder is left."""
    # Of this process itself: what other tests fork from has children that come and go meanwhile.
    before = psutil.Process().children()
    handler = signal.getsignal(signal.SIGTERM)
    out = io.StringIO()
    store = tmp_path / "store"
    assert demo.run_demo(store, out=out, playhead=[*stand_in, ""]) == 0
    told = out.getvalue()
    headings = [line[0] for line in told.splitlines() if line[:1].isdigit()]
    assert headings == [str(n + 1) for n in range(demo.STEPS)]
    assert "ledger: re_2  ch_1007  49.00 usd" in told
    assert "possible duplicate of 5" in told
    assert "unexpected: GET http://payments/v1/refunds?charge=ch_1007" in told
    assert "SAFE RETRY: answered from the first outcome" in told
    assert "\\x1b[31mred" in told
    assert "\x1b" not in told
    assert set(psutil.Process().children()) <= set(before)
    assert signal.getsignal(signal.SIGTERM) == handler
    assert [path.name for path in store.iterdir()] == ["said"]


class _Prepared:
    """What the demo takes of `subprocess`, with fakes and commands that start quickly."""

    DEVNULL, PIPE, TimeoutExpired = subprocess.DEVNULL, subprocess.PIPE, subprocess.TimeoutExpired

    Popen = staticmethod(partial(prepared.start, imports=("aiohttp.web",)))


@pytest.mark.skipif(
    importlib.util.find_spec("openai") is None, reason="needs openai, which is not installed"
)
def test_the_story_goes_as_told_with_the_command_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the first that people run."""
    monkeypatch.setattr(demo, "subprocess", _Prepared)
    out = io.StringIO()
    assert demo.run_demo(tmp_path / "store", out=out) == 0, out.getvalue()


@pytest.mark.parametrize(
    ("fault", "step", "found"),
    [
        ("one refund", 2, "['re_1']"),
        ("no tape", 4, "125"),
        ("other words", 4, "['agent     human']"),
        ("no note", 4, ""),
        ("silent", 5, "[]"),
        ("pays twice", 6, "agent     refund re_2"),
        ("no retry", 7, ""),
    ],
)
def test_a_step_that_goes_otherwise_ends_the_demo_with_1(
    fault: str,
    step: int,
    found: str,
    stand_in: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step is named, and what was expected and found; the folder is removed all the same."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(demo, "subprocess", _Prepared)
    out = io.StringIO()
    assert demo.run_demo(out=out, playhead=[*stand_in, fault]) == 1
    told = out.getvalue()
    assert f"step {step} of {demo.STEPS} failed" in told
    assert f"found:    {found}" in told.replace("\\n", "\n")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the extra the demo does not begin."""
    find: Any = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "openai" else find(n))
    assert demo.run_demo() == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert "pip install 'playhead[demo]'" in written.err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_leaves_no_process_behind(
    number: signal.Signals, code: int, stand_in: list[str], tmp_path: Path
) -> None:
    """Ctrl-C and SIGTERM in the middle of a command end it, and both services."""
    source = (
        "import json, signal, sys; from playhead.proxy.commands.demo import run_demo;"
        # A shell that starts the tests in the background has them ignore SIGINT.
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.exit(run_demo(playhead=json.loads(sys.argv[1])))"
    )
    command = [sys.executable, "-c", source, json.dumps([*stand_in, "hang"])]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdout is not None
        try:
            assert any("| agent" in line for line in running.stdout)  # reads as far as this line
            children = psutil.Process(running.pid).children(recursive=True)
            assert len(children) == 3
            running.send_signal(number)
            assert running.wait(10) == code
            assert not [child for child in children if child.is_running()]
            assert list(tmp_path.glob("playhead-demo-*")) == []
        finally:
            running.kill()


@pytest.mark.parametrize("there", [True, False])
def test_bytecode_is_used_where_it_is_and_kept_nowhere(
    there: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who wants none written gets none that stays, and none is made where others can be read."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "of_a_demo.py").write_text("")
    if there:
        py_compile.compile(str(tmp_path / "of_a_demo.py"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(demo, "_LARGEST", ["of_a_demo"])
    made = demo._Demo(demo._Printer(io.StringIO()), tmp_path, tmp_path / "store", ())._environment
    prefix = None if there else str(tmp_path / "bytecode")
    assert made.get("PYTHONPYCACHEPREFIX") == prefix
    assert ("PYTHONDONTWRITEBYTECODE" in made) is there
