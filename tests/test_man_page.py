"""The man page has every command that `--help` lists, each flag, and every exit code; roff reads it without a complaint."""

import subprocess
from pathlib import Path

import click
import pytest

import playhead
from playhead.proxy.commands import COMMANDS, INTERNAL
from playhead.tape.exit_codes import ExitCode
from playhead.tests.support.needs import need

FILE = Path(playhead.__file__).parent / "proxy" / "command_line" / "playhead.1"
TEXT = FILE.read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_that_is_listed_has_a_section(command: click.Command) -> None:
    """With its flags; those of containers have none."""
    start = f'.SS "playhead {command.name} '
    assert (start in TEXT) == (command not in INTERNAL)
    if command not in INTERNAL:
        section = TEXT.partition(start)[2].partition("\n.S")[0]
        for one in command.params:
            if isinstance(one, click.Option):
                assert one.opts[-1].replace("-", "\\-") in section


def test_every_exit_code_is_there() -> None:
    """In its section."""
    section = TEXT.partition(".SH EXIT STATUS")[2].partition(".SH FILES")[0]
    assert [f"\\fB{code.value}\\fR" in section for code in ExitCode] == [True] * len(ExitCode)


def test_roff_reads_it() -> None:
    """Without a warning."""
    need("groff")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
