"""Bad input and hostile texts, planted by somebody who has not read the code, for the verbs that look back.

`test_look_back_causes.py` has those of `blame`, `cache` and `history`.
"""

from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tests.adversary.planted.bad_input import (
    BAD_INPUT,
    FORBIDDEN,
    HOSTILE,
    base,
    hostile,
    text_of_case,
)
from playhead.tests.support.counts import FULL
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.planted_runs import make_exchanges
from playhead.tests.support.replays import write_recording

VERBS = (
    *("show", "rewind", "state", "context"),
    *("diff", "similar", "cost", "destinations", "policy", "runs", "label"),
)
CASES = [one for one in BAD_INPUT if one["verb"] in VERBS]
SHORT = [one for one in HOSTILE if FULL or len(text_of_case(one)) < 10_000]
ASKED = (
    *(("diff", "{run}", "{other}"), ("similar", "{run}"), ("cost", "{run}", "--by", "step")),
    ("destinations", "{run}"),
    *(("show", "{run}"), ("show", "{run}", "--all"), ("show", "{run}", "4")),
    *(("state", "{run}", "4"), ("context", "{run}", "--lost"), ("context", "{run}", "--orphans")),
    *(("rewind", "{run}", "--before-effect"), ("show", "{run}", "--graph", "mermaid")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with what the cases speak of, and with hostile runs."""
    path = tmp_path_factory.mktemp("planted") / "store"

    async def write(store: Store) -> None:
        await write_recording(store, "the-run", make_exchanges(base()))
        await write_recording(store, "another", make_exchanges(base())[:5])
        for number, case in enumerate(SHORT):
            await write_recording(store, f"hostile-{number}", make_exchanges(hostile(case)))
        await store.runs.create("still-open", mode="record", at_ns=1)

    return write_store(path, write)


def ask(folder: Path, words: list[str]) -> tuple[int, str]:
    """Run a command on the store; give its code, and all that is printed."""
    names = {"{run}": "the-run", "{other}": "another", "{open}": "still-open"}
    for name, given in names.items():
        words = [word.replace(name, given) for word in words]
    arguments = [words[0], "--store", str(folder), *words[1:]]
    result: Result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    error = result.exception
    if error is None:
        return result.return_value or 0, result.output
    assert isinstance(error, PlayheadError | ClickException), error
    hint = getattr(error, "hint", "") or ""
    told = error.format_message() if isinstance(error, ClickException) else str(error)
    return 2, f"{result.output}{told}\n{hint}"


@pytest.mark.parametrize("case", CASES, ids=[one["id"] for one in CASES])
def test_bad_input_is_told_what_would_be_right(
    folder: Path, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One sentence says what was expected and what was found, and nothing is changed."""
    monkeypatch.chdir(tmp_path)
    code, told = ask(folder, case["argv"])
    assert code in ((0, 1, 2) if case["exit"] is None else (case["exit"],)), told
    low = told.lower()
    for one in case["must"]:
        words = one if isinstance(one, list) else [one]
        named = [word.replace("{run}", "the-run").lower() for word in words]
        assert any(word in low for word in named), (words, told)
    assert not any(word in told for word in case["must_not"])


@pytest.mark.parametrize("number", range(len(SHORT)), ids=[one["id"] for one in SHORT])
def test_hostile_text_is_text(folder: Path, number: int) -> None:
    """Whatever a tape holds, nothing of it acts on the terminal of who looks at it."""
    case = SHORT[number]
    for words in ASKED:
        given = [word.replace("{run}", f"hostile-{number}") for word in words]
        code, told = ask(folder, given)
        # What is too large or too deep for a dialect is no model call.
        assert code in (0, 1) or "asked no model that is known" in told
        assert not any(char in told for char in FORBIDDEN)
        assert not any(one in told for one in case["must_not"])


def test_runs_are_found_by_hostile_text(folder: Path) -> None:
    """It is shown as text, too."""
    code, told = ask(folder, ["runs", "--grep", "MARK"])
    assert code == 0
    assert not any(char in told for char in FORBIDDEN)
    texts = [text_of_case(case) for case in SHORT]
    marked = [at for at, text in enumerate(texts) if "MARK" in text and len(text) < 10_000]
    assert all(f"hostile-{number}: " in told for number in marked)
