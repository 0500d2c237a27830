"""The cases of secrets_formats.yaml, secrets_benign.yaml and secrets_hostile.yaml against the redactor.

By default each format has one value and one position; PLAYHEAD_FULL=1 takes all prefixes, values and positions, and hostile texts of
a megabyte. secrets_open.yaml lists the cases that are not as their files say.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
import yaml

from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.counts import FULL

from . import secret_search
from .secret_recipes import FOLDER, hostile, read

CASES = read("formats")["cases"]
BENIGN = read("benign")["cases"]
HOSTILE = read("hostile")["cases"]
PERSONAL = read("formats")["personal"]


@cache
def listed() -> dict[str, Any]:
    """Give secrets_open.yaml."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / "secrets_open.yaml").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def later() -> Iterator[ThreadPoolExecutor]:
    """Give a thread that compiles what was learned, as a proxy has one."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.mark.parametrize("name", [case["id"] for case in CASES])
def test_a_secret_is_replaced(name: str) -> None:
    """None of its parts is stored, as it is or decoded."""
    left = list(secret_search.formats(full=FULL, names=[name]))
    if name in listed()["open"]:
        assert left or not FULL, f"{name} is replaced now: take it from secrets_open.yaml"
    else:
        assert left == []


@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in PERSONAL])
def test_personal_data_is_replaced(case: dict[str, Any]) -> None:
    """Under a rule that names its kind; without one it stays."""
    for made, position, stored in secret_search.personal(case):
        assert secret_search.left(made, stored) == [], position
        value = made.values["value"].encode()
        plain = Redactor(b"k" * 32).text(value)
        assert plain == value


@pytest.mark.parametrize("name", [case["id"] for case in BENIGN])
def test_what_is_no_secret_is_stored_as_it_came(name: str) -> None:
    """Byte by byte."""
    changed = list(secret_search.benign([name]))
    assert bool(changed) == (name in listed()["open"]), changed


@pytest.mark.parametrize("name", [case["id"] for case in HOSTILE])
def test_a_hostile_text_is_searched_to_its_bounds(name: str, later: ThreadPoolExecutor) -> None:
    """And keeps its length; how long that takes is measured in benchmarks/redact.py."""
    assert len(list(secret_search.hostile_times(None if FULL else 65536, [name], later))) == 1


def test_what_was_not_searched_is_not_stored() -> None:
    """Zeros of the same length, in a place whose kind has the keyed hash of the bytes."""
    case = next(case for case in HOSTILE if case["id"] == "passwords-fresh")
    text = hostile(case, size=1 << 18)
    redactor = Redactor(b"k" * 32)
    searched = redactor._search.search(text)
    assert searched is not None
    last = searched.spans[-1]
    assert last.kind.startswith("unsearched:")
    assert last.at + last.size == len(text) == len(searched.data)
    assert searched.data[last.at :] == bytes(last.size)
    again = Redactor(b"k" * 32)._search.search(text)
    assert again == searched
    other = redactor._search.search(text[:-1] + b"?")
    assert other is not None
    assert other.spans[-1].kind != last.kind


def test_the_list_names_cases() -> None:
    """Each open or removed case is in a file, and has a reason."""
    names = {case["id"] for case in (*CASES, *BENIGN, *HOSTILE)}
    for part in ("open", "removed"):
        assert set(listed()[part]) <= names
        assert all(listed()[part].values())
