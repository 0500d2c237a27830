"""`playhead --help` has a list for each task, and every command but those of containers is in one of them."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli, main
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


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        # words of other tools
        ("list", 2, "No such command 'list'. Did you mean 'runs'?"),
        ("ls", 2, "No such command 'ls'. Did you mean 'runs'?"),
        ("version", 2, "Did you mean '--version'?"),
        ("help", 2, "Did you mean '--help'?"),
        ("logs", 2, "Did you mean 'show'?"),
        ("delete", 2, "Did you mean 'erase'?"),
        ("run -- true", 2, "Did you mean 'record'?"),
        ("recrod", 2, "Did you mean 'record'?"),
        ("Show", 2, "Did you mean 'show'?"),
        ("nonsense", 2, "No such command 'nonsense'. `playhead --help` lists all."),
        # flags
        ("erase -f x", 2, "No such option '-f'. Did you mean '--yes'?"),
        ("erase --force x", 2, "No such option '--force'. Did you mean '--yes'?"),
        ("record --force -- true", 2, "Did you mean '--replace'?"),
        ("record --name x -- true", 2, "Did you mean '--run'?"),
        ("record --rnu x -- true", 2, "No such option '--rnu'. Did you mean '--run'?"),
        ("replay --no-sandbx x -- true", 125, "Did you mean '--no-sandbox'?"),
        ("record --xyzzy -- true", 2, "No such option '--xyzzy'.\n"),
        ("show mine --seq 3", 2, "'--seq'. SEQ is written without it: `playhead show RUN [SEQ]`."),
        ("replay --run mine -- true", 125, "'--run'. RUN is written without it: `playhead replay "),
        ("branch r --seq 2 -- true", 2, "Did you mean '--at'?"),
        ("export r -o x", 2, "No such option '-o'. Did you mean one of: '--tape', '--html'?"),
        ("export r --format har", 2, "Did you mean one of: '--tape', '--html'?"),
        ("learn a b -o x", 2, "No such option '-o'. Did you mean '--write'?"),
        # one dash too few
        ("record -run m1 -- true", 2, "No such option '-run'. Did you mean '--run', with two dashes?"),
        ("record -run=m1 -- true", 2, "'-run=m1'. Did you mean '--run=m1', with two dashes?"),
        ("show -config x mine", 2, "'-config'. Did you mean '--config', with two dashes?"),
        ("show mine --all -rwa", 2, "No such option '-rwa'. Did you mean '--raw'?"),
        ("show mine -raw", 2, "'-raw'. Did you mean '--raw', with two dashes?"),
        ("replay mine -store x -- true", 125, "'-store'. Did you mean '--store', with two dashes?"),
        ("record -rum m1 -- true", 2, "No such option '-rum'. Did you mean '--run'?"),
        ("stop mine --reason -run x", 2, "Got unexpected extra argument (x)"),
        # a step below 1
        ("show mine -1", 2, "No such option '-1'. A SEQ counts from 1: `playhead show mine` lists"),
        ("ask mine -2", 2, "'-2'. A SEQ counts from 1: "),
        # a value that was left out
        ("export mine --tape", 2, "Option '--tape' requires an argument. Expected: --tape PATH"),
        ("record --run", 2, "Option '--run' requires an argument. Expected: --run ID"),
        ("replay mine --compare", 125, "requires an argument. Expected: --compare WORDS"),
        ("record --run -- python agent.py", 2, "--run needs a value; expected: --run ID -- python agent.py"),
        ("record --run r --store -- true", 2, "--store needs a value; expected: --store DIR -- true"),
        ("replay --receipt -- true", 125, "--receipt needs a value; expected: --receipt PATH -- true"),
        # what is missing, with an example
        ("record", 2, "Missing argument '-- COMMAND...'. As in: playhead record --run refund -- python agent.py"),
        ("replay", 125, "or give --like. As in: playhead replay refund -- python agent.py"),
        ("replay x", 125, "'-- COMMAND...'. As in: playhead replay refund -- python agent.py"),
        ("branch x -- true", 2, "Missing option '--at'. As in: playhead branch refund --at 3"),
        ("bisect", 2, "As in: playhead bisect bad good -- python agent.py"),
        ("stdio", 2, "As in: playhead stdio -- npx some-server"),
        ("show", 2, "Missing argument 'RUN'. `playhead runs` lists the runs."),
        ("blame mine 3", 2, "Missing argument 'PATH'. As in: playhead blame refund 3 '$.amount'"),
        ("history", 2, "Missing argument 'URL'. As in: playhead history https://shop.test/orders/7"),
        ("export mine", 2, "'--tape' or '--html'. As in: playhead export refund --tape refund.tape"),
        # what is no step
        ("ask mine why?", 2, "'why?' is no step of a run: expected its SEQ, as 7; `playhead show mine` lists them"),
        ("branch mine --at abc -- true", 2, "'--at': 'abc' is no step of a run: expected its SEQ, as 7; `playhead show "),
        ("branch mine --at 2.1 -- true", 2, "'2.1' names a part: expected a SEQ alone, as 2"),
        ("note mine --seq x hi", 2, "'--seq': 'x' is no step of a run: expected its SEQ, as 7; "),
        ("note mine --seq 0 hi", 2, "--seq: a SEQ counts from 1"),
        ("show mine x", 2, "or SEQ.PART of a WebSocket, as 7.2; `playhead show mine` lists them"),
        # a value that is none
        ("ui --port x", 2, "'x' is not a valid integer range. Expected a whole number from 0 to 65535."),
        ("import --max-gib x a", 2, "Expected a whole number from 1."),
        ("branch r --at 1 --times 0 -- true", 2, "1<=x<=1000. Expected a whole number from 1 to 1000."),
        ("gates aprove x", 2, "'deny'. Did you mean 'approve'?"),
        ("show r --graph mermiad", 2, "Did you mean 'mermaid'?"),
        ("show r --graph svg", 2, "'svg' is not one of 'mermaid', 'dot'.\n"),
        # a word too many
        ("runs base", 2, "extra argument (base). `runs` takes no name: `playhead show base` shows a run, "
         "and `playhead runs --grep base` searches all"),
        ("runs base bad", 2, "(base bad). `runs` takes no name: `playhead show base` shows a run"),
        ("diff a", 2, "`playhead runs` lists the runs."),
        ("diff a 2 3", 2, "(3). `diff` compares two runs, not two steps: `playhead diff a RUN`; "),
        ("diff a b c", 2, "(c). Expected: playhead diff [OPTIONS] FIRST SECOND; a name or a text with blanks needs quotes."),
        ("export a b.tape", 2, "named with an option: `playhead export a --tape b.tape`"),
        ("export a b.html", 2, "named with an option: `playhead export a --html b.html`"),
        ("note a hello new world", 2, "The text needs quotes: `playhead note a 'hello new world'`"),
        ("ui a python agent.py", 2, "A command comes behind `--`: `playhead ui a --allow-run -- python agent.py`"),
        ("ui a 3", 2, "`ui` takes no step: `playhead ui a` opens the run"),
        ("receipt my run", 2, "Expected: playhead receipt [OPTIONS] RUN; a name or a text with blanks needs quotes."),
    ],
)  # fmt: skip
def test_a_wrong_word_is_answered_with_the_right_one(
    line: str, code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started; what is advised is a command or flag that there is."""
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == code
    assert said in capfd.readouterr().err


def test_a_flag_that_takes_no_value_may_stand_before_the_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Only one that takes a word would take `--` for it."""
    with pytest.raises(SystemExit):
        main(["replay", "-q", "--", "true"])
    assert "needs a value" not in capfd.readouterr().err


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version_is_told(flag: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Also under the letter that other tools have for it."""
    with pytest.raises(SystemExit) as ended:
        main([flag])
    assert ended.value.code == 0
    assert capfd.readouterr().out.startswith("playhead, version ")


@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if one not in INTERNAL], ids=lambda one: one.name
)
def test_what_is_missing_is_said_with_a_next_step(
    command: click.Command, capfd: pytest.CaptureFixture[str]
) -> None:
    """An example that has all that the command needs, or what lists the runs."""
    needed = [one for one in command.params if one.required]
    if not needed:
        return
    with pytest.raises(SystemExit):
        main([str(command.name)])
    shown = capfd.readouterr().err
    found = re.search(r"As in: playhead (.*)", shown)
    if found is None:
        assert "`playhead runs` lists the runs." in shown
        assert all(one.type.name in ("run", "seq") for one in needed)
        return
    name, *words = shlex.split(found[1])
    assert name == command.name
    with command.make_context(name, words):
        pass
