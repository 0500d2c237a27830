"""What another index does to a tape."""

from dataclasses import replace

from playhead.config import Classes, Config, IgnoreRule, RedactRule, parse_match
from playhead.tape.canonical.canonical_request import CANONICAL_VERSION, compile_rules
from playhead.tape.exchange import (
    Fault,
    FaultKind,
    Fingerprint,
    Phase,
    RedactedText,
    RequestClass,
    Seq,
)
from playhead.tape.matching.index import (
    Change,
    Entry,
    Index,
    answer_hash,
    compare,
    index_digest,
    index_entry,
    reclassify,
)
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, make_response

BY_TEXT = compile_rules((IgnoreRule(parse_match("*://api.test"), json=("$.id",)),))


def key(text: str) -> Fingerprint:
    return Fingerprint(text.encode().ljust(16))


def change(old: str, new: str, raw: str, answers: str) -> Change:
    """Compare indexes, each a letter for an exchange."""
    entries = tuple(
        Entry(Seq(seq), key(letter), bits.encode())
        for seq, (letter, bits) in enumerate(zip(new, raw, strict=True), start=1)
    )
    before = {Seq(seq): key(letter) for seq, letter in enumerate(old, start=1)}
    answered = {Seq(seq): letter.encode() for seq, letter in enumerate(answers, start=1)}
    return compare(before, Index(entries, b""), answered)


def test_nothing_changes_under_the_same_keys() -> None:
    """Repeats of the same bytes are answered in order, which is no collision."""
    assert change("aab", "aab", "112", "xyz") == Change(0, (), (), ())


def test_what_became_equal_and_was_answered_differently_collides() -> None:
    """Other bytes, one key."""
    assert change("abc", "aac", "123", "xyz") == Change(1, ((1, 2),), (), ((1, 2),))  # type: ignore[arg-type]


def test_what_became_equal_and_was_answered_alike_does_not() -> None:
    """It does not matter which of them is served."""
    assert change("abc", "aac", "123", "xxz") == Change(1, ((1, 2),), (), ())  # type: ignore[arg-type]


def test_what_became_apart_is_told() -> None:
    """Under a rule that was taken out."""
    assert change("aaa", "aba", "121", "xyx") == Change(1, (), ((1, 2, 3),), ())  # type: ignore[arg-type]


def test_an_answer_is_its_status_body_and_failure() -> None:
    """Not its head, which says when and by whom; telemetry never matters."""
    one = make_exchange(response=make_response(b"a"))
    hashes = [
        answer_hash(found)
        for found in (
            one,
            make_exchange(response=make_response(b"b")),
            make_exchange(response=make_response(b"a", 201)),
            make_exchange(
                response=None, fault=Fault(FaultKind.RESET, Phase.HEAD, RedactedText("x"), 1)
            ),
            make_exchange(response=None),
        )
    ]
    assert len(set(hashes)) == 5
    assert answer_hash(make_exchange(response=make_response(b"a", headers=()))) == hashes[0]
    assert answer_hash(replace(one, request_class=RequestClass.TELEMETRY)) == b""


def test_where_an_answer_sends_its_client_and_how_a_call_ended_count() -> None:
    """Neither need stand in a body: a redirect has none, nor has a call of gRPC that failed."""
    answers = [
        make_response(b"", 303, headers=((b"Location", b"/jobs/1"), (b"Date", b"now"))),
        make_response(b"", 303, headers=((b"location", b"/jobs/2"),)),
        make_response(b"", trailers=((b"grpc-status", b"0"),)),
        make_response(b"", trailers=((b"grpc-status", b"5"),)),
    ]
    hashes = [answer_hash(make_exchange(response=answer)) for answer in answers]
    assert len(set(hashes)) == 4
    later = replace(answers[0], headers=((b"location", b"/jobs/1"), (b"date", b"later")))
    assert answer_hash(make_exchange(response=later)) == hashes[0]


def test_ids_of_json_rpc_make_no_other_answer() -> None:
    """They are written over when it is served; what it says is not."""
    told = b'{"jsonrpc":"2.0","id":%b,"result":{"id":%b}}'
    hashes = [
        answer_hash(make_exchange(response=make_response(body)))
        for body in (told % (b"1", b"7"), told % (b'"b"', b"7"), told % (b"1", b"8"))
    ]
    assert hashes[0] == hashes[1] != hashes[2]
    events = ((b"content-type", b"text/event-stream"),)
    one, other = (
        make_response(b"data: " + told % (number, b"7") + b"\n\n", headers=events)
        for number in (b"1", b"2")
    )
    assert answer_hash(make_exchange(response=one)) == answer_hash(make_exchange(response=other))


def test_an_entry_is_made_from_the_raw_bytes() -> None:
    """Whatever fingerprint the exchange was recorded with."""
    entries = [
        index_entry(
            make_exchange(request=make_request("https://api.test/", {"id": n, "t": 1})),
            BY_TEXT,
            Redactor(b"a test"),
        )
        for n in (1, 2)
    ]
    assert entries[0].fingerprint == entries[1].fingerprint
    assert entries[0].raw != entries[1].raw


def test_the_digest_tells_rules_and_redacted_query_keys() -> None:
    """A redacted value counts by its kind: another list of them is another index."""
    rules = compile_rules()
    named = Config(redact=(RedactRule(query="session_key"),))
    unseen = Config(redact=(RedactRule(header="x-token"),))
    assert index_digest(rules) == index_digest(rules, unseen) == rules.digest
    assert len({index_digest(rules), index_digest(rules, named), index_digest(BY_TEXT)}) == 3
    assert Index((), b"").canonical == CANONICAL_VERSION


def test_the_digest_tells_classes() -> None:
    """What is telemetry counts by its path: another table is another index."""
    rules = compile_rules()
    match = (parse_match("POST *://*/track"),)
    own = [Classes(), Classes(telemetry=match), Classes(effect=match)]
    assert len({index_digest(rules, Config(classes=classes)) for classes in own}) == 3
    assert index_digest(rules, Config(classes=own[0])) == rules.digest


def test_a_recorded_request_has_the_class_of_now() -> None:
    """Whatever class it was recorded with."""
    one = make_exchange(what="POST https://api.test/track", kind=RequestClass.EFFECT)
    assert reclassify(one, Classes()) is one
    classes = Classes(telemetry=(parse_match("POST *://*/track"),))
    assert reclassify(one, classes) == replace(one, request_class=RequestClass.TELEMETRY)
