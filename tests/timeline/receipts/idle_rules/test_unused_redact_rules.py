"""Rules of `redact` whose place was in nothing that was recorded."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from playhead.store import LogCorrupt
from playhead.tape.exchange import Exchange, Redaction, WebSocketSummary
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange
from playhead.timeline.receipts.idle_rules.unused_redact_rules import UnusedRedactRules

BODY = {"user": {"password": "x" * 10, "age": 7}, "text": '{"inner": "secret"}'}
HEADERS = {"x-internal": "a", "content-type": "application/json"}
FORM = make_request(
    "https://api.test/f", b"pin=1&name=b", {"content-type": "application/x-www-form-urlencoded"}
)


def exchange(seq: int = 1, **changes: Any) -> Exchange:
    request = make_request("https://api.test/v1?session=1", BODY, HEADERS)
    answer = make_response(b'{"token_of_answer": "t"}')
    return make_exchange(seq, **{"request": request, "response": answer, **changes})


def hinted(rules: list[tuple[str, str]], *made: Exchange) -> list[str]:
    def find(data: Mapping[str, Any]) -> Exchange:
        return next(one for one in made if one.seq == data["seq"])

    unused = UnusedRedactRules()
    unused.rules(rules)
    for one in made:
        unused.request({"seq": one.seq})
        unused.request({"seq": one.seq})
    return [row["text"] for row in unused.to_json(find)]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (("header", "X-Internal"), ""),
        (("header", "x-interal"), "redact rule header 'x-interal' met nothing in this run; did you mean 'x-internal'? "),
        (("header", "x-other"), "redact rule header 'x-other' met nothing in this run"),
        (("query", "session"), ""),
        (("query", "sesion"), "did you mean 'session'?"),
        (("json", "password"), ""),
        (("json", "PASSWORD"), ""),
        (("json", "inner"), ""),
        (("json", "token_of_answer"), ""),
        (("json", "passwrod"), "did you mean 'password'?"),
        (("json", "age"), "met nothing in this run: its field is there, and its value is no text"),
        (("json", "word"), "redact rule json 'word' met nothing in this run"),
        (("form", "pin"), ""),
        (("form", "pinn"), "did you mean 'pin'?"),
        (("pattern", "3"), "redact[3], a pattern, replaced nothing in this run that no other rule replaces"),
        (("path", "0"), "redact[0], a path, replaced nothing in this run that no other rule replaces"),
    ],
)  # fmt: skip
def test_a_rule_that_met_nothing_is_said_with_the_near_name(
    rule: tuple[str, str], said: str
) -> None:
    """A slip in it leaves what was to be hidden on the tape."""
    told = hinted([rule], exchange(), exchange(2, request=FORM))
    assert len(told) == bool(said)
    assert all(said in one for one in told)


def test_what_was_replaced_where_no_name_explains_it_may_be_a_pattern() -> None:
    """Then nothing is said of patterns; a redaction that a header's rule has made is explained."""
    rules = [("header", "x-internal"), ("pattern", "1")]
    by_name = Redaction("request.header.x-internal", "configured")
    by_format = Redaction("request.header.authorization", "authorization")
    by_pattern = Redaction("request.body", "configured")
    assert len(hinted(rules, exchange(redactions=(by_name, by_format)))) == 1
    assert not hinted(rules, exchange(redactions=(by_name,)), exchange(2, redactions=(by_pattern,)))


def test_nothing_is_said_where_not_all_was_looked_at() -> None:
    """Messages of a WebSocket are elsewhere; heads are not."""
    rules = [("json", "nosuch"), ("pattern", "1"), ("header", "nosuch")]
    websocket = exchange(websocket=WebSocketSummary(1, 1, None))
    assert hinted(rules, websocket) == ["redact rule header 'nosuch' met nothing in this run"]
    assert not hinted([("json", "nosuch")])
    many = [exchange(at) for at in range(1, 2003)]
    assert not hinted(rules, *many)


def test_a_damaged_exchange_may_have_had_the_place() -> None:
    unused = UnusedRedactRules()
    unused.rules([("header", "nosuch")])
    unused.request({"seq": 1})

    def find(data: Mapping[str, Any]) -> Exchange:
        raise LogCorrupt("damaged")

    assert unused.to_json(find) == []
    assert unused.to_json(lambda _: None) == []
    assert unused.to_json(lambda _: replace(exchange(), redactions=()))
