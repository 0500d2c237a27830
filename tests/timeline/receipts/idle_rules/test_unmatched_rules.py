"""Rules that nothing in a run was meant by."""

from typing import Any

import pytest

from playhead.tape.exchange import RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.timeline import Receipt, render_receipt
from playhead.timeline.reading.logged_place import split_place
from playhead.timeline.receipts.answers.request_outcomes import Requests
from playhead.timeline.receipts.idle_rules.unmatched_rules import Hints
from playhead.timeline.receipts.receipt_parts import Parts
from playhead.timeline.receipts.warnings_and_hints import Advice

RULES: dict[str, Any] = {
    "ignore": [("POST https://api.test/v1/runs", None), ("*://api.test/v1/*?page=*", None)],
    "effects": [("https://api.test/v1/refunds", "effect")],
    "live": [("GET https://clock.test", None), ("* *://llm.test", "inference")],
}


def left(*requests: tuple[str, str, RequestClass]) -> list[str]:
    """Give the patterns that are hinted at after some requests."""
    hints = Hints()
    hints.rules(RULES)
    for method, url, kind in requests:
        hints.request({"method": method, "url": url, "request_class": kind.value})
    return [row["rule"] for row in hints.to_json()]


ALL = [text for rules in RULES.values() for text, _ in rules]
READ, EFFECT, INFERENCE = RequestClass.READ, RequestClass.EFFECT, RequestClass.INFERENCE


@pytest.mark.parametrize(
    ("request_", "matched"),
    [
        (("POST", "https://api.test/v1/runs", EFFECT), 0),
        (("POST", "https://api.test:443/v1/runs?x=1", READ), 0),
        (("GET", "http://api.test:81/v1/things?page=2", READ), 1),
        (("POST", "https://api.test/v1/refunds", EFFECT), 2),
        (("GET", "https://clock.test", READ), 3),
        (("POST", "https://llm.test/v1/chat", INFERENCE), 4),
        # What is no effect is never answered by an effect rule; a class that goes live is that class alone.
        (("POST", "https://api.test/v1/refunds", READ), None),
        (("POST", "https://llm.test/v1/chat", EFFECT), None),
        (("GET", "https://elsewhere.test/", READ), None),
        (("GET", "https://[broken", READ), None),
    ],
)
def test_a_rule_is_hinted_at_until_a_request_matches_it(
    request_: tuple[str, str, RequestClass], matched: int | None
) -> None:
    """One row a request: which rule is no longer left."""
    assert left(request_, request_) == [text for at, text in enumerate(ALL) if at != matched]


def test_a_hint_says_which_rule_it_is() -> None:
    """With its key in the configuration and its pattern; in the receipt for people too."""
    hints = Hints()
    hints.rules({"live": [("GET https://clock.test", None)], "effects": [("no pattern", None)]})
    rows = hints.to_json()
    text = "live rule 'GET https://clock.test' matched no request of this run"
    assert rows == [{"key": "live", "rule": "GET https://clock.test", "text": text}]
    parts = Parts(Requests(1), advice=Advice(hints=rows))
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=parts)
    assert f"hints:\n  {text}" in render_receipt(receipt)


HELD = {
    "url": "https://api.test/v1/refunds",
    "method": "POST",
    "rule": "effects POST https://b.test",
}


@pytest.mark.parametrize(
    ("after", "left"),
    [
        ((), {"ignore": "GET https://api.test"}),
        (
            (EventKind.VERDICT,),
            {"ignore": "GET https://api.test", "effects": "POST https://b.test"},
        ),
    ],
    ids=["the process died", "it was refused"],
)
def test_what_a_gate_holds_is_a_request(after: tuple[EventKind, ...], left: dict[str, str]) -> None:
    """Its rule, and whatever else its URL fits, has matched, though the log says no more of it."""
    advice = Advice()
    rules = {
        "ignore": [("GET https://api.test", None), ("POST https://api.test/*", None)],
        "effects": [("POST https://b.test", None), ("* https://api.test/*", "effect")],
    }
    ignored = [("POST https://api.test/*", {"json": ("$.id",)})]
    advice.take(Event(EventKind.NOTED, 1, {"rules": rules, "ignored": ignored}))
    advice.take(Event(EventKind.HELD, 2, {"seq": 1, **HELD}))
    for kind in after:
        data = {"seq": 1, **HELD, "request_class": "effect", "verdict": "refused"}
        advice.take(Event(kind, 3, data))
    advice.find_hints(lambda _: None)
    assert {row["key"]: row["rule"] for row in advice.hints} == left


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.test", ("https", "api.test", 443, "/")),
        ("http://api.test:8080/a?b=1", ("http", "api.test", 8080, "/a?b=1")),
        ("http://[::1]:81/a", ("http", "::1", 81, "/a")),
        ("http://api.test?b", ("http", "api.test", 80, "?b")),
        # As it was sent, whatever else it could mean
        ("http://api.test//a//b", ("http", "api.test", 80, "//a//b")),
        ("http://api.test/a#b?c", ("http", "api.test", 80, "/a#b?c")),
        ("http://api.test/a\tb", ("http", "api.test", 80, "/a\tb")),
        ("no place", None),
        ("http://[::1/a", None),
    ],
)
def test_a_url_is_taken_apart_as_it_was_sent(url: str, place: object) -> None:
    """Else a rule for such a place would match while it plays, and not in the receipt."""
    assert split_place(url) == place
