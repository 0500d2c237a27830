"""Uploads in blocks: names are drawn at random, so a list of blocks is compared by what was sent under them."""

from dataclasses import replace

import pytest

from playhead.tape.canonical.canonical_request import (
    Canonical,
    canonical,
    compile_rules,
    effect_key,
    fingerprint,
)
from playhead.tape.exchange import Exchange, Request, RequestClass, Seq
from playhead.tape.matching.header_agreement import Agreement
from playhead.tests.support.exchanges import make_exchange, make_request

RULES = compile_rules()
BLOB = "https://someone.blob.core.windows.net/things/new.bin"


def block(name: str, content: bytes) -> Request:
    """Send a block."""
    return _azure(f"PUT {BLOB}?comp=block&blockid={name}", content)


def block_list(*names: str) -> Request:
    """Say of which blocks the blob is made."""
    body = "".join(f"<Latest>{name}</Latest>" for name in names)
    return _azure(f"PUT {BLOB}?comp=blocklist", f"<BlockList>{body}</BlockList>".encode())


def _azure(what: str, body: bytes) -> Request:
    return replace(make_request(what, body), headers=((b"x-ms-version", b"2026-06-06"),))


def _recorded(seq: int, request: Request) -> Exchange:
    return replace(
        make_exchange(seq),
        request=request,
        request_class=RequestClass.EFFECT,
        fingerprint=fingerprint(_form(request)),
    )


def _form(request: Request) -> Canonical:
    return canonical(request, RequestClass.EFFECT, RULES)


ONE, TWO, SAME = b"one", b"two", b"one"
LISTS = {
    # Contents of the recorded and the present blocks as sent, the recorded and the present list, and the places that differ.
    "other names": ([("a", ONE), ("b", TWO)], [("x", ONE), ("y", TWO)], "ab", "xy", ""),
    "percent-encoded": (
        [("YWFhYQ%3D%3D", ONE), ("YmJiYg%3d%3d", TWO)],
        [("Y2NjYw%3D%3D", ONE), ("ZGRkZA==", TWO)],
        ("YWFhYQ==", "YmJiYg=="),
        ("Y2NjYw==", "ZGRkZA=="),
        "",
    ),
    "sent in another order": ([("a", ONE), ("b", TWO)], [("y", TWO), ("x", ONE)], "ab", "xy", ""),
    "changed places": (
        [("a", ONE), ("b", TWO)],
        [("x", ONE), ("y", TWO)],
        "ab",
        "yx",
        "body block 0, body block 1",
    ),
    "one twice": ([("a", ONE), ("b", TWO)], [("x", ONE), ("y", TWO)], "ab", "xx", "body block 1"),
    "equal contents": ([("a", ONE), ("b", SAME)], [("x", ONE), ("y", SAME)], "ab", "yx", ""),
    "a name twice": ([("a", ONE), ("a", TWO)], [("x", ONE), ("x", TWO)], "a", "x", ""),
    "a name twice, the last first": (
        [("a", ONE), ("a", TWO)],
        [("x", TWO), ("x", ONE)],
        "a",
        "x",
        "body block 0",
    ),
    "a name twice, then two": (
        [("a", ONE), ("a", TWO)],
        [("y", TWO), ("x", ONE)],
        "a",
        "x",
        "body block 0",
    ),
    "never sent, the same": ([], [], "ab", "ab", ""),
    "never sent, another": ([], [], "ab", "ac", "body block 1"),
    "sent now alone": ([], [("b", ONE)], "ab", "ab", ""),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_blocks_is_compared_by_their_contents(name: str) -> None:
    """It agrees where each name has the content that the recorded one at its place has."""
    sent, now, listed, lists, place = LISTS[name]
    agreement = Agreement(RULES, lambda seq: None, lambda request: ())
    tape = [_recorded(seq, block(*one)) for seq, one in enumerate(sent, 1)]
    for one in now:
        request = block(*one)
        found = [row for row in tape if row.fingerprint == fingerprint(_form(request))]
        if found:
            tape.remove(found[0])
            agreement.note(request, found[0], tuple[Seq, ...])
    recorded = _recorded(9, block_list(*listed))
    assert fingerprint(_form(block_list(*lists))) == recorded.fingerprint
    wrong = agreement.find_disagreements(block_list(*lists), recorded, tuple[Seq, ...])
    assert wrong is not None
    assert ", ".join(one.difference.place for one in wrong) == place


def test_a_list_is_of_what_was_sent_before_it() -> None:
    """A name that was used again after a list stands for two blocks, one in each list."""
    agreement = Agreement(RULES, lambda seq: None, lambda request: ())
    one, two = _recorded(1, block("a", ONE)), _recorded(3, block("a", TWO))
    lists = _recorded(2, block_list("a")), _recorded(4, block_list("a"))
    found = list[list[str]]()
    for sent, recorded in zip((two, one), lists, strict=True):
        agreement.note(sent.request, sent, tuple[Seq, ...])
        wrong = agreement.find_disagreements(recorded.request, recorded, tuple[Seq, ...])
        assert wrong is not None
        found.append([drift.difference.place for drift in wrong])
    assert found == [["body block 0"], ["body block 0"]]


REQUESTS = {
    "another content": (block("a", ONE), block("a", TWO)),
    "no content": (block("a", ONE), block("a", b"")),
    "another number of blocks": (block_list("a"), block_list("a", "b")),
    "other than Azure's": (
        make_request(f"PUT {BLOB}?comp=block&blockid=a", ONE),
        make_request(f"PUT {BLOB}?comp=block&blockid=b", ONE),
    ),
    "two names": (block("a&blockid=b", ONE), block("c&blockid=b", ONE)),
    "a read": (
        replace(block("a", b""), method="GET"),
        replace(block("b", b""), method="GET"),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_all_else_of_a_block_counts(name: str) -> None:
    """Only the name of a block that is sent to Azure is left out."""
    one, other = REQUESTS[name]
    assert fingerprint(_form(one)) != fingerprint(_form(other))


def test_a_block_under_another_name_is_no_duplicate() -> None:
    """A blob may be made of several blocks with one content."""
    first, second = _form(block("a", ONE)), _form(block("b", ONE))
    assert fingerprint(first) == fingerprint(second)
    assert effect_key(first) != effect_key(second)
