"""An option of COMMAND without `--` before it is refused, and the line that is meant is given."""

from pathlib import Path

import pytest

from playhead.proxy.cli import main
from playhead.store import Store
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a recording `mine`, and a file `agent.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").touch()
    with Store.open(tmp_path / ".playhead") as opened:
        record_run(opened, "mine", [ask()])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # options that playhead has not
        ("record --run r python3 agent.py --model gpt-5",
         "'--model' stands after the command python3; put `--` before the command: "
         "playhead record --run r -- python3 agent.py --model gpt-5\n"),
        ("record python3 agent.py -v", "'-v' stands after the command python3; "),
        ("record python3 agent.py --model=x", "'--model' stands after the command python3; "),
        ("replay mine python3 agent.py --verbose", "playhead replay mine -- python3 agent.py --verbose\n"),
        ("replay -q mine --break effect python3 agent.py --verbose",
         "playhead replay -q mine --break effect -- python3 agent.py --verbose\n"),
        ("replay --like python3 agent.py -v", "playhead replay --like -- python3 agent.py -v\n"),
        ("branch mine --at 1 python3 agent.py -v", "playhead branch mine --at 1 -- python3 agent.py -v\n"),
        ("resume mine python3 agent.py -v", "playhead resume mine -- python3 agent.py -v\n"),
        ("explore mine python3 agent.py -v", "playhead explore mine -- python3 agent.py -v\n"),
        ("bisect mine other python3 agent.py -v", "playhead bisect mine other -- python3 agent.py -v\n"),
        ("sweep sweep.yaml python3 agent.py -v", "playhead sweep sweep.yaml -- python3 agent.py -v\n"),
        ("stdio npx some-server --port 1", "playhead stdio -- npx some-server --port 1\n"),
        # options that playhead has, too
        ("record --run r python3 agent.py -q hello",
         "playhead record --run r -- python3 agent.py -q hello (if '-q' is for playhead, put it before the `--`)"),
        ("record python3 agent.py --json", "playhead record -- python3 agent.py --json (if '--json' is for"),
        ("record python3 -c x", "playhead record -- python3 -c x (if '-c' is for"),
        ("replay mine python3 agent.py --json -- x", "playhead replay mine -- python3 agent.py --json -- x (if"),
        # the run is missing, too
        ("replay python3 agent.py --model gpt-5", "expected: playhead replay RUN -- python3 agent.py --model gpt-5."),
        ("replay ./agent.py -v", "expected: playhead replay RUN -- ./agent.py -v."),
        ("bisect mine ./agent.py -v", "expected: playhead bisect mine GOOD -- ./agent.py -v."),
    ],
)  # fmt: skip
def test_an_option_behind_the_command_needs_dashes(
    line: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started with half of its words."""
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == (125 if line.startswith("replay") else 2)
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "replay nosuch --break effect -- true --model x",
        "replay --break effect nosuch -- true -q",
        "replay nosuch true agent.py",
        "branch nosuch --at 1 -- true --json",
        "bisect nosuch --label mine -- true -v",
        "replay true -q -- true",
    ],
)
def test_options_before_the_command_are_those_of_playhead(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """In any place before `--`: the words are read, and the unknown run is what is wrong."""
    with pytest.raises(SystemExit):
        main(line.split())
    assert "unknown run " in capfd.readouterr().err


def test_help_is_shown_behind_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    """Help has the form of the line."""
    with pytest.raises(SystemExit) as ended:
        main(["record", "python3", "--help"])
    assert ended.value.code == 0
    assert "-- COMMAND..." in capfd.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # the name of a run has blanks
        ("replay my run/1 -- true", "with blanks needs quotes; expected: playhead replay 'my run/1' -- true\n"),
        ("replay my run/1 -q -- true", "expected: playhead replay 'my run/1' -q -- true\n"),
        ("replay my run/1 true x", "expected: playhead replay 'my run/1' -- true x\n"),
        ("branch my run/1 --at 1 -- true", "expected: playhead branch 'my run/1' --at 1 -- true\n"),
        ("resume my run/1 -- true", "expected: playhead resume 'my run/1' -- true\n"),
        ("bisect my run/1 mine -- true", "expected: playhead bisect 'my run/1' mine -- true\n"),
        ("show my run/1", "'run/1' belongs to the name of the run, which needs quotes: 'my run/1'"),
        ("ask my run/1", "'run/1' belongs to the name of the run, which needs quotes: 'my run/1'"),
        # a word that belongs nowhere
        ("replay mine nosuch -- true", "nosuch stands before `--`, where no word belongs; "
         "expected: playhead replay mine -- true (a name with blanks needs quotes)\n"),
        ("replay --like nosuch -- true", "no word belongs; expected: playhead replay --like -- true\n"),
        ("explore mine nosuch -- true", "expected: playhead explore mine -- true (a name"),
        ("record nosuch -- true", "nosuch stands before `--`, where `record` takes no such word; "
         "for a name of the run: playhead record --run nosuch -- true\n"),
        ("stdio nosuch -- true", "playhead stdio --name nosuch -- true\n"),
        ("sweep a.yaml nosuch -- true", "expected: playhead sweep [OPTIONS] FILE [-- COMMAND...]\n"),
        # `--` in the middle of the command
        ("record true x -- --flag", "`--` stands behind the command true; put it before the command: "
         "playhead record -- true x -- --flag\n"),
        ("replay mine true -- x", "playhead replay mine -- true -- x\n"),
    ],
)  # fmt: skip
def test_a_word_on_the_wrong_side_of_the_dashes_is_refused(
    line: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It would be run as the command, or the `--` of the command be taken away."""
    with Store.open(tmp_path / ".playhead") as opened:
        record_run(opened, "my run/1", [ask()])
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == (125 if line.startswith("replay") else 2)
    assert said in capfd.readouterr().err
