"""Ctrl-C ends every command with 130, and without a traceback, whatever it is doing."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from playhead.proxy.commands import COMMANDS
from playhead.store import Store
from playhead.tests.support import prepared
from playhead.tests.support.process import Serve, playhead, playhead_anew
from playhead.tests.support.recordings import ask, record_run

HELD = [sys.executable, "-m", "playhead.tests.support.held_command"]
AT_PROGRESS = {
    "verify": ("verify", "--store", "store"),
    "gc": ("gc", "-c", "gc.yaml"),
    "export": ("export", "--store", "store", "mine", "--tape", "out.tape"),
    "rekey": ("rekey", "--store", "store", "--to-key-file", "a.key"),
    "import": ("import", "--store", "other", "kept.tape"),
    "archive": ("archive", "-c", "archive.yaml", "mine"),
    "doctor": ("doctor",),
    "cost": ("cost", "--store", "store", "--since", "30d"),
    "destinations": ("destinations", "--store", "store"),
    "reindex": ("reindex", "--store", "store", "mine"),
}
"""Commands that work long; each reports its progress."""
_PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("interrupted")
    with Store.open(made / "store") as opened:
        for name in ("mine", "mine"):
            record_run(opened, name, [ask()])
    with Store.open(made / "old") as opened:
        record_run(opened, "mine", [ask()])
    (made / "gc.yaml").write_text("store: old\nretention: {keep: 0s}\n")
    (made / "archive.yaml").write_text("store: store\nretention: {archive: kept}\n")
    for words in (
        ("rekey", "--new-key", made / "a.key"),
        ("export", "--store", made / "store", "mine", "--tape", made / "kept.tape"),
    ):
        done = playhead(*words)
        assert done.returncode == 0, done.stderr
    return made


def interrupt(
    words: Sequence[str], cwd: Path, until: str = "", *, feed: str = ""
) -> tuple[int, str]:
    """Run a command until it prints this, or has read nearly all of that; send SIGINT, and give its exit code and what it said."""
    if words[:3] == HELD:  # which itself has SIGINT heard
        started = prepared.start(words, imports=prepared.FOR_OURS, cwd=cwd, text=True, **_PIPES)
    else:
        started = subprocess.Popen(
            words,
            cwd=cwd,
            text=True,
            # A shell that starts the tests in the background has them ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            **_PIPES,
        )
    with started as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(feed)
            process.stdin.flush()
            assert not until or process.stdout.readline().startswith(until), process.communicate()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    return process.returncode, said


@pytest.mark.parametrize("name", AT_PROGRESS)
def test_long_command_ends_with_130(name: str, folder: Path) -> None:
    """In the midst of its work, where it shows a bar."""
    code, said = interrupt([*HELD, *AT_PROGRESS[name]], folder, "held")
    assert (code, "Traceback" in said) == (130, False), said
    with Store.open(folder / "store") as opened:  # and leaves what can be read
        assert opened.runs.get("mine").exchanges == 1


def test_import_of_lines_that_do_not_come_ends_with_130(folder: Path) -> None:
    """Nothing is read from standard input any more."""
    words = [
        sys.executable,
        "-m",
        "playhead.proxy.cli",
        "import",
        "--store",
        "lines",
        "--jsonl",
        "-",
    ]
    code, said = interrupt(words, folder, feed="x" * (1 << 20))  # far more than a pipe takes
    assert (code, said.strip()) == (130, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_serve_says_how_it_was_ended(number: int, code: int, tmp_path: Path) -> None:
    """Whoever asks it to end gets 0; Ctrl-C is 130, as for every command."""
    with Serve("--store", tmp_path / "store", "--listen", "127.0.0.1:0") as proxy:
        assert proxy.stop(number)[0] == code


@pytest.mark.parametrize("verb", ["record", "replay"])
def test_command_that_is_interrupted_is_130(verb: str, tmp_path: Path) -> None:
    """Whatever the receipt says of it: 125 would have `git bisect run` go on."""
    first = playhead("record", "--run", "mine", "--store", tmp_path / "store", "--", "true")
    assert first.returncode == 0
    name = ("--run", "again") if verb == "record" else ("--no-sandbox", "mine")
    waits = "import signal, time; signal.signal(2, signal.SIG_DFL); print('up', flush=True); time.sleep(60)"
    words = ["-m", "playhead.proxy.cli", verb, "--store", str(tmp_path / "store"), *name]
    code, said = interrupt(
        [sys.executable, *words, "--", sys.executable, "-c", waits], tmp_path, "up"
    )
    assert code == 130
    assert "Traceback" not in said
    assert verb == "record" or "the command was interrupted: exit code 130" in said


def test_recording_of_an_interrupted_command_is_replayed_as_it_was(tmp_path: Path) -> None:
    """130 is how it ended then, too: the receipt decides."""
    store = tmp_path / "store"
    ends = (sys.executable, "-c", "import sys; sys.exit(130)")
    assert playhead("record", "--run", "a", "--store", store, "--", *ends).returncode == 130
    done = playhead("replay", "--no-sandbox", "--store", store, "a", "--", *ends)
    assert done.returncode == 125  # no request was made


_WHILE_IMPORTING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    def find_spec(self, name, *_):
        if name == "playhead.proxy.commands":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""


def test_interrupt_while_it_is_imported_is_silent(tmp_path: Path) -> None:
    """Nobody wants to see where Python was."""
    done = playhead_anew("runs", cwd=tmp_path, env=dict(os.environ), first=_WHILE_IMPORTING)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_importing_the_command_line_leaves_signals_alone() -> None:
    """Tests and tools import it, too."""
    assert COMMANDS
    text = (
        "import signal; signal.signal(2, signal.default_int_handler);"
        "import playhead.proxy.cli; assert signal.getsignal(2) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
