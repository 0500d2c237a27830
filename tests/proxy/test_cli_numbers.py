"""Numbers on the command line: whatever is asked for, there is a sentence and no traceback."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from playhead.proxy.cli import main
from playhead.proxy.commands import COMMANDS
from playhead.proxy.commands.shared_options_and_output import StepParam
from playhead.store import Store
from playhead.tests.support.recordings import ask, record_run

_NUMBERS = (-1, 0, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 64, 10**30)
_REQUIRED = {
    "run": "tape",
    "good": "other",
    "text": "a note",
    "file": "nowhere.playhead",
    "path": "$.a",
    "command": "true",
    "seq": "9",
}
"""What the other arguments of a command are."""


def _listed() -> Iterator[tuple[click.Command, click.Parameter]]:
    """Yield each option and argument that is a number."""
    for command in COMMANDS:
        for parameter in command.params:
            number = isinstance(parameter.type, click.types.IntParamType | StepParam)
            counted = isinstance(parameter, click.Option) and parameter.count
            if number and not counted:
                yield command, parameter


_WORDS = [
    pytest.param(command, parameter, id=f"{command.name} {parameter.name}")
    for command, parameter in _listed()
]


def test_there_are_numbers() -> None:
    """What lists them finds those that are known."""
    assert {"show seq", "blame seq", "import max_gib"} <= {word.id for word in _WORDS}


@pytest.mark.parametrize(("command", "parameter"), _WORDS)
def test_any_number_gets_a_sentence(
    command: click.Command,
    parameter: click.Parameter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It ends with 2 and says why; an error of another kind would come through."""
    monkeypatch.chdir(tmp_path)
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    for number in _NUMBERS:
        words = [str(command.name), "--store", "store"]
        if isinstance(parameter, click.Option):
            words += [parameter.opts[-1], str(number)]
        words.append("--")
        for one in command.params:
            if isinstance(one, click.Argument):
                words.append(str(number) if one is parameter else _REQUIRED[str(one.name)])
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capfd.readouterr()
        assert ended.value.code == 2, (words, said)
        assert said.err.count("\n") <= 5, (words, said)
