"""`playhead --help` has a list for each task, and every command but those of containers is in one of them."""

import re

import click
import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.proxy.commands import COMMANDS, GROUPS, INTERNAL

_TEXT = CliRunner().invoke(cli, ["--help"], standalone_mode=False, terminal_width=80).output


def _listed() -> dict[str, list[str]]:
    """Give the commands below each heading."""
    found: dict[str, list[str]] = {}
    for line in _TEXT.splitlines():
        if re.fullmatch(r"\S.*:", line):
            found[line[:-1]] = []
        elif named := re.match(r"  ([a-z]+)  +\S", line):
            found[list(found)[-1]].append(named[1])
    return found


def test_commands_are_listed_by_task() -> None:
    """Under the headings of the groups, in their order, each command once."""
    listed = _listed()
    listed.pop("Options", None)
    assert listed == {
        title: [str(one.name) for one in commands] for title, commands in GROUPS.items()
    }


@pytest.mark.parametrize("command", INTERNAL, ids=lambda one: one.name)
def test_a_command_of_containers_is_not_listed_and_runs(command: click.Command) -> None:
    """Whoever names it gets its help."""
    assert f"  {command.name} " not in _TEXT
    shown = CliRunner().invoke(cli, [str(command.name), "--help"], standalone_mode=False)
    assert shown.exit_code == 0
    assert "Usage:" in shown.output


def test_no_command_is_left_out() -> None:
    """Each is in one group or internal."""
    grouped = [one for commands in GROUPS.values() for one in commands]
    assert [*grouped, *INTERNAL] == list(COMMANDS)
    assert {one.name for one in COMMANDS} == set(cli.commands)


@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if one not in INTERNAL], ids=lambda one: one.name
)
def test_a_line_of_help_is_whole(command: click.Command) -> None:
    """It fits beside the name in 80 columns; nothing is cut off."""
    (line,) = re.findall(rf"^  {command.name}  .*$", _TEXT, re.MULTILINE)
    assert len(line) <= 80
    assert "..." not in line
