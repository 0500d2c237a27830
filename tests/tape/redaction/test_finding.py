"""The table of formats, the engines behind it, and what is learned."""

import json
import re
import string
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead
from playhead.tape.redaction import looks_like_secret
from playhead.tape.redaction.finding import pattern_prefilter as heads_of
from playhead.tape.redaction.finding.finder import (
    BYTES_A_LOOK,
    LOOKS,
    Finder,
    Finding,
    finder,
)
from playhead.tape.redaction.finding.format_table import FORMATS
from playhead.tape.redaction.finding.pattern_prefilter import Re2Heads
from playhead.tape.redaction.finding.searched_text import Context
from playhead.tape.redaction.learned import MAX_VALUES, Learned
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.search import Kind
from playhead.tests.adversary.secret_recipes import expand, hostile, read
from playhead.tests.support.format_rows import rows

PAGE = Path(playhead.__file__).parent / "docs" / "secret-formats.md"
TEXTS = [made.text for case in read("formats")["cases"][::3] for made in expand(case)[:1]]


@cache
def engines() -> tuple[Finder, Finder]:
    """Give a finder with the fastest engine, and one with RE2."""
    return Finder(), Finder(Re2Heads)


def test_the_page_shows_the_table() -> None:
    """All rows, in order; `python -m playhead.tests.support.format_rows` prints them."""
    shown = re.findall(r"^\| \d+ \|.*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert shown == rows()
    assert len(shown) >= 100


def test_names_of_formats_are_unique() -> None:
    """One of a configuration means one row, or a family of them."""
    names = [one.name for one in FORMATS]
    assert len(names) == len(set(names))
    assert all(one.test in looks_like_secret.TESTS for one in FORMATS)


@pytest.mark.skipif(heads_of.hyperscan is None, reason="no wheel of hyperscan for this machine")
def test_both_engines_find_the_same() -> None:
    """In the texts of the cases about secrets."""
    fast, slow = engines()
    for text in TEXTS:
        context = Context(text.encode())
        assert fast.find(context)[:3] == slow.find(context)[:3], text


@pytest.mark.skipif(heads_of.hyperscan is None, reason="no wheel of hyperscan for this machine")
@given(
    st.lists(
        st.sampled_from(
            [
                "sk-",
                "password",
                "=",
                ": ",
                '"',
                "\\",
                "\n",
                "ghp_",
                "Qz7Lm2xV9kT5dR8wNc1Hj6VuEs4",
                "://",
                "a:",
                "@",
            ]
        )
    )
)
def test_both_engines_find_the_same_in_any_text(parts: list[str]) -> None:
    """Made of what is looked for."""
    fast, slow = engines()
    context = Context("".join(parts).encode())
    assert fast.find(context) == slow.find(context)


@given(st.binary(max_size=400), st.booleans())
def test_no_text_makes_it_raise(data: bytes, final: bool) -> None:
    """Places are in order, and inside the text."""
    finding = engines()[0].find(Context(data, final=final))
    last = 0
    for one in finding.found:
        assert last <= one.start < one.end <= len(data)
        last = one.end


def _values(count: int) -> list[bytes]:
    rng = Random(7)
    return ["".join(rng.choices("abcdefgXYZ0123456789", k=24)).encode() for _ in range(count)]


@pytest.mark.parametrize("count", [1, 5, 70, MAX_VALUES])
@pytest.mark.parametrize("threads", [False, True])
def test_what_was_learned_is_found_whichever_tier_has_it(count: int, *, threads: bool) -> None:
    """Before it was compiled, while it is, and after."""
    with ThreadPoolExecutor(1) as executor:
        learned = Learned(executor.submit if threads else None)
        values = _values(count)
        for value in values:
            learned.add(value)
            matches, _ = learned.find(b"it is " + value + b" here")
            assert [match.needle.value for match in matches] == [value]
        executor.submit(len, ()).result()
        for value in (values[0], values[-1]):
            matches, searched = learned.find(b"hex " + value.hex().encode())
            assert [match.needle.value for match in matches] == [value]
            assert searched == 52


@pytest.mark.parametrize("threads", [False, True])
def test_values_with_zero_bytes_are_found_where_they_are(*, threads: bool) -> None:
    """In a database too: its binding takes a text for one that ends there."""
    with ThreadPoolExecutor(1) as executor:
        learned = Learned(executor.submit if threads else None)
        values = [value[:at] + b"\0" + value[at:] for at, value in enumerate(_values(24))]
        values += _values(70)[24:]
        for value in values:
            learned.add(value)
        learned.find(b"x" * 5000)
        executor.submit(len, ()).result()
        for value in values:
            matches, _ = learned.find(b"it is " + value + b" here, not " + value[:12])
            assert [(match.start, match.end) for match in matches] == [(6, 6 + len(value))]


def test_the_oldest_values_are_forgotten() -> None:
    """Beyond a bound; the newest ones are found."""
    learned = Learned()
    values = _values(MAX_VALUES + 100)
    for value in values:
        learned.add(value)
    assert len(learned.values) <= MAX_VALUES
    assert learned.find(values[0])[0] == []
    assert learned.find(values[-1])[0]


def test_given_secrets_are_never_forgotten() -> None:
    """Whatever is learned after them; short words are not looked for."""
    given = [b"hunter2", b"open-sesame", b"correcthorsebattery", b"me:x"]
    learned = Learned(None, [*given, b"secret", b"Password", b"***", b""])
    for value in _values(MAX_VALUES + 100):
        learned.add(value)
    assert len(learned.values) <= MAX_VALUES
    found = {value for value in given if learned.find(b"it is " + value + b" here")[0]}
    assert found == set(given[:3])
    assert not learned.find(b"a secret Password ***")[0]
    assert set(given[:3]) <= set(learned.values)


def _fresh(what: str, count: int) -> bytes:
    """Give an answer with many different secrets."""
    drawn = Random(1)

    def some(size: int, signs: str = string.ascii_letters + string.digits) -> str:
        return "".join(drawn.choices(signs, k=size))

    capitals = string.ascii_uppercase + "234567"
    rows: dict[str, Callable[[], object]] = {
        "aws": lambda: f"https://b.test/f?X-Amz-Credential=AS{'IA'}{some(16, capitals)}%2Fs3&X-Amz-Security-Token=IQoJb3Jp{'Z2luX2Vj'}{some(300)}&X-Amz-Signature={some(64, '0123456789abcdef')}",
        "google": lambda: f"https://g.test/f?X-Goog-Credential=svc%40p.test&X-Goog-Signature={some(512, '0123456789abcdef')}",
        "uuid": lambda: {"token": str(uuid.UUID(bytes=drawn.randbytes(16)))},
        "har": lambda: {"request": {"headers": [{"name": name, "value": some(32)} for name in ("Cookie", "Authorization", "X-Api-Key", "X-Auth-Token")]}, "url": "/" + "a" * 200},
    }  # fmt: skip
    return json.dumps([rows[what]() for _ in range(count)]).encode()


@pytest.mark.parametrize(
    ("what", "count"), [("aws", 1000), ("google", 1000), ("uuid", 5000), ("har", 2000)]
)
def test_a_long_list_of_secrets_is_searched_whole(what: str, count: int) -> None:
    """All of it, so that a replay can give it; of a text with more places there are fewer looks."""
    data = _fresh(what, count)
    assert finder().find(Context(data, answer=True)).searched == len(data)


def test_a_text_that_is_too_full_is_given_up_early() -> None:
    """Nobody waits for what is not kept in the end."""
    data = _fresh("uuid", 20_000)
    found = finder().find(Context(data, answer=True))
    assert 0 < len(found.found) < 5000
    assert found.searched < len(data)


class _Counting:
    """A finder that adds up what is spent."""

    def __init__(self) -> None:
        self.spent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(finder(), name)

    def confirm(self, *told: Any) -> Finding:
        found = finder().confirm(*told)
        self.spent += found.spent
        return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ansi-names", Kind()),
        ("percent-names", Kind()),
        ("form-plus", Kind(form=True)),
        ("events-tokens", Kind(stream=True)),
        ("base64-settings", Kind()),
    ],
)
def test_a_text_has_one_budget_in_all_the_ways_it_is_read(name: str, kind: Kind) -> None:
    """And what was not searched in one of them is not kept."""
    case = next(one for one in read("hostile")["cases"] if one["id"] == name)
    secret = b"v7Qm2pZ9xAb3LrfW0yC1"
    text = hostile(case, size=1 << 19) + b"\x1b[1mtoken\x1b[0m=" + secret
    search = Redactor(b"k" * 32)._search
    counting = _Counting()
    search._finder = cast("Finder", counting)
    searched = search.search(text, kind)
    most = LOOKS + len(text) // BYTES_A_LOOK
    assert 0 < counting.spent < most + LOOKS // 10
    assert searched is not None
    assert searched.spans[-1].kind.startswith("unsearched:")
    assert secret not in searched.data
