"""A text that goes on where an earlier one ended gives what it gives when it is searched whole."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.redaction import incremental_search as resumed_of
from playhead.tape.redaction import search as search_of
from playhead.tape.redaction.finding import secrets_by_name, secrets_in_base64
from playhead.tape.redaction.finding.finder import Finder, finder
from playhead.tape.redaction.finding.formats import Formats
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.counts import tries

TOKEN = b"ghp_Qz7Lm2xV9kT5dR8wNc1Hj6VuEs4bF3gY0aXi"
PASSWORD = b"kX9-vQ2_mZ7pL4wT"
PROSE = json.dumps("All that was said before is sent again with what is new.\n" * 24).encode()
PARTS = (
    PROSE,
    PROSE,
    b'{"role":"user","content":"',
    b'"},',
    TOKEN,
    TOKEN[:20],
    TOKEN[20:],
    PASSWORD,
    b'"password": "' + PASSWORD + b'"',
    b'{"value":"' + PASSWORD + b'","name":"api_token"}',
    b"DB_PASS=" + PASSWORD + b"\\n",
    b"%2F\\/",
    b"A" * 23,
    b"B" + PASSWORD * 5,
    b"cookie: ",
    b"curl -u bob:" + PASSWORD + b" ",
    b"-----BEGIN PRIVATE KEY-----",
    b"://bob:" + PASSWORD + b"@a.test",
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have short texts be resumed."""
    monkeypatch.setattr(search_of, "LEAST", 128)
    monkeypatch.setattr(resumed_of, "LEAST", 128)
    monkeypatch.setattr(resumed_of, "_END", 100)
    monkeypatch.setattr(resumed_of, "_NEAR", 1)


@tries(100, 3000)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.5, 0.9, 0.98, 1.0]),
            st.lists(st.sampled_from(PARTS), max_size=6),
            st.booleans(),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_it_gives_what_the_whole_search_gives(steps: list[tuple[float, list[bytes], bool]]) -> None:
    """Texts, places and what is learned, whatever is kept of the text before, and also where something is learned between."""
    whole, resumed = Redactor(b"k" * 32)._search, Redactor(b"k" * 32)._search
    text = PROSE
    for kept, parts, learns in steps:
        text = text[: int(len(text) * kept)] + b"".join(parts)
        assert resumed.search(text, goes_on=True) == whole.search(text)
        if learns:
            for one in (whole, resumed):
                one._learned.add(PASSWORD)
        assert resumed._learned.values == whole._learned.values


@pytest.mark.parametrize("part", dict.fromkeys(PARTS[1:]))
def test_a_place_is_found_wherever_the_text_before_ended(part: bytes) -> None:
    """At each of its bytes; a learned value too."""
    search = Redactor(b"k" * 32)._search
    search._learned.add(PASSWORD)
    text = PROSE + part + b'"}' + PROSE[:60]
    whole = finder().look(text)
    clean = search._learned.is_clean(text)
    for end in range(len(PROSE) - 1, len(text)):
        resumed = resumed_of.Resumed(finder(), search._learned)
        resumed.look(text[:end])
        looked, known = resumed.look(text)
        assert (looked.places if looked else []) == (whole.places if whole else [])
        assert (known is not None) == clean


def test_no_head_is_wider_than_what_is_scanned_again() -> None:
    """Or a place that begins in what two texts have in common would be missed."""
    parser = pytest.importorskip("re._parser")
    heads = [
        *Formats().heads,
        *(head for head, _ in secrets_by_name.NAMED),
        secrets_by_name.REVERSED_HEAD,
    ]
    patterns = [head.pattern for head in heads]
    patterns += [re.escape(word.text.decode()) for word in secrets_in_base64.words()]
    assert max(parser.parse(one).getwidth()[1] for one in patterns) < resumed_of.MOST_WIDTH


def test_only_what_is_new_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a conversation, while nothing is learned."""
    scanned: list[int] = []
    search = Redactor(b"k" * 32)._search
    search._learned.add(PASSWORD)

    def counting[T](find: Callable[[bytes], T]) -> Callable[[bytes], T]:
        def count(data: bytes) -> T:
            scanned.append(len(data))
            return find(data)

        return count

    monkeypatch.setattr(search._resumed, "_finder", Finder())
    monkeypatch.setattr(search._resumed._finder, "look", counting(finder().look))
    monkeypatch.setattr(search._learned, "is_clean", counting(search._learned.is_clean))
    text = PROSE * 20
    for _ in range(3):
        assert search.search(text + b'"}]', goes_on=True) is None
        text += PROSE
    assert scanned[:2] == [len(PROSE) * 20 + 3] * 2
    assert max(scanned[2:]) < 2 * len(PROSE) + resumed_of.MOST_WIDTH


def test_what_is_remembered_is_bounded() -> None:
    """Texts of megabytes are remembered as long as all of them are not too much; the newest stay."""
    resumed = resumed_of.Resumed(finder(), Redactor(b"k" * 32)._search._learned)
    for letter in b"abcd":
        resumed.look(bytes([letter]) * 3_000_000)
    assert [text.data[:1] for text in resumed._texts] == [b"d", b"c"]
    resumed.look(b"e" * 5_000_000)
    assert [text.data[:1] for text in resumed._texts] == [b"d", b"c"]
