"""Places of rules that no request had."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from playhead.store import LogCorrupt
from playhead.tape.exchange import Exchange, Request, RequestClass
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange
from playhead.timeline.receipts.idle_rules.unmatched_rules import Hints

MATCH = "POST https://api.test/*"
FORM = {"content-type": "application/x-www-form-urlencoded"}
TEXT = {"content-type": "text/plain"}


def hinted(places: dict[str, tuple[str, ...]], *requests: Request, **changes: Any) -> list[str]:
    """Give what is said of the places of one rule after some requests."""
    made: list[Exchange] = [
        make_exchange(at, request=one, **changes) for at, one in enumerate(requests, 1)
    ]

    def find(data: Mapping[str, Any]) -> Exchange:
        return made[int(data["seq"]) - 1]

    hints = Hints()
    hints.rules({"ignore": [(MATCH, None)]}, [(MATCH, places)])
    for one in made:
        told = {"seq": one.seq, "method": one.request.method, "url": one.request.url}
        hints.request({**told, "request_class": one.request_class.value})
    return [row["text"].partition(": ")[2].partition(" was in")[0] for row in hints.to_json(find)]


def ask(body: object = b"", target: str = "/v1", headers: dict[str, str] | None = None) -> Request:
    return make_request(f"https://api.test{target}", body, headers)


@pytest.mark.parametrize(
    ("places", "request_", "left"),
    [
        ({"json": ("$.request_id", "$.reqeust_id")}, ask({"request_id": 1}), ["json '$.reqeust_id'"]),
        ({"json": ("$.a[*].b",)}, ask({"a": [{"b": 1}]}), []),
        ({"json": ("$.a[*].b",)}, ask({"a": []}), ["json '$.a[*].b'"]),
        ({"query": ("n", "m")}, ask(target="/v1?n=1"), ["query 'm'"]),
        ({"form": ("n", "m")}, ask(b"n=1", headers=FORM), ["form 'm'"]),
        ({"header": ("range", "accept")}, ask(headers={"range": "x"}), ["header 'accept'"]),
        ({"regex": ("id-[0-9]+", "no-[0-9]+")}, ask({"a": "see id-1"}), ["regex 'no-[0-9]+'"]),
        ({"regex": ("id-[0-9]+", "no-[0-9]+")}, ask(b"id-1", headers=TEXT), ["regex 'no-[0-9]+'"]),
        ({"regex": ("id-[0-9]+",)}, ask(b"nothing", headers=TEXT), ["regex 'id-[0-9]+'"]),
        ({"regex": ("id-[0-9]+",)}, ask(target="/id-7"), []),
        # What is too large to be looked at may have it
        ({"json": ("$.a",)}, ask(b'"' + b"x" * 1024 * 1024 + b'"'), []),
    ],
)  # fmt: skip
def test_a_place_that_no_request_had_is_hinted_at(
    places: dict[str, tuple[str, ...]], request_: Request, left: list[str]
) -> None:
    """One row a sort of place: only what was never there is named."""
    assert hinted(places, request_) == left


def test_a_place_is_looked_for_in_every_request() -> None:
    """One that has it is enough."""
    requests = [ask({"a": 1})] * 20 + [ask({"b": 1})]
    assert hinted({"json": ("$.b", "$.c")}, *requests) == ["json '$.c'"]


def test_of_too_many_requests_nothing_is_said() -> None:
    """The place may be in one that was not looked at."""
    assert hinted({"json": ("$.c",)}, *[ask({"a": 1})] * 51) == []


def test_a_header_that_never_counts_is_hinted_at() -> None:
    """Leaving it out changes nothing, whether it was there or not."""
    asked = ask(headers={"user-agent": "x"})
    assert hinted({"header": ("User-Agent",)}, asked) == [
        "header 'User-Agent' does not count in matching anyway"
    ]


def test_a_conversation_may_have_a_place_in_its_messages() -> None:
    """They are not read for a hint."""
    from playhead.tape.exchange import WebSocketSummary

    said = WebSocketSummary(1, 1, None)
    assert hinted({"json": ("$.a",)}, ask(), websocket=said) == []
    assert hinted({"json": ("$.a",)}, ask()) == ["json '$.a'"]


def test_a_request_that_cannot_be_read_says_nothing_of_places() -> None:
    """Neither is one that is missing taken for one without the place."""
    hints = Hints()
    hints.rules({}, [(MATCH, {"json": ("$.a",)}), ("no pattern", {"json": ("$.a",)})])
    told = {"seq": 1, "method": "POST", "url": "https://api.test/", "request_class": "read"}
    hints.request(told)

    def find(_: Mapping[str, Any]) -> Exchange:
        raise LogCorrupt("broken")

    assert hints.to_json(find) == []
    assert hints.to_json(lambda _: None) == []
    telemetry = Hints()
    telemetry.rules({}, [(MATCH, {"json": ("$.a",)})])
    telemetry.request({**told, "request_class": RequestClass.TELEMETRY.value})
    made = replace(make_exchange(1), request_class=RequestClass.TELEMETRY)
    assert telemetry.to_json(lambda _: made) == []
