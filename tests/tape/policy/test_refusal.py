"""What an agent sees of a refusal."""

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from playhead.tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from playhead.tape.exchange import Request, Seq
from playhead.tape.policy.refusal import REFUSAL_STATUS, refusal_body, refusal_headers, stub_headers

REQUEST = Request("POST", "https", "api.example.com", 443, "/v1/x", "HTTP/1.1", ())
DIVERGENCE = Divergence(
    DivergenceKind.CHANGED,
    Seq(9),
    "POST",
    REQUEST.url,
    Seq(7),
    (Difference("body $.model", '"a"', '"b"'), Difference("body $.seed", "1", "2")),
    "",
)
_lines = st.text(st.characters(codec=None, exclude_categories=()), max_size=500)


def test_the_status_is_one_that_no_sdk_retries() -> None:
    """SDKs retry 408, 409, 429 and 5xx."""
    assert REFUSAL_STATUS == 424


def test_a_refusal_says_what_was_asked_and_what_was_nearest() -> None:
    """The message alone tells a person where to look."""
    body = json.loads(refusal_body(REQUEST, DIVERGENCE, "not on the tape"))
    message = (
        "Playhead refused POST https://api.example.com/v1/x: not on the tape."
        ' Nearest on the tape is exchange 7; it differs at body $.model: recorded "a", asked "b"'
    )
    assert body == {
        "type": "error",
        "error": {
            "message": message,
            "type": "playhead_refused",
            "code": "not_on_tape",
            "param": "body $.model",
        },
        "message": message,
        "playhead": {
            "refused": True,
            "reason": "not on the tape",
            "divergence": DIVERGENCE.to_json(),
        },
    }


def test_a_refusal_without_anything_near_says_so_much() -> None:
    """Nothing is made up where nothing is known."""
    body = json.loads(refusal_body(REQUEST, None, "the tape is exhausted"))
    assert body["error"]["message"].endswith(": the tape is exhausted")
    assert body["error"]["param"] is None
    assert body["playhead"] == {"refused": True, "reason": "the tape is exhausted"}


def test_a_refusal_tells_clients_not_to_retry() -> None:
    """The headers that retrying SDKs obey are there."""
    assert refusal_headers("not on\r\nthe tape") == (
        (b"content-type", b"application/json"),
        (b"x-should-retry", b"false"),
        (b"stripe-should-retry", b"false"),
        (b"x-playhead", b"refused; not on the tape"),
    )


def test_a_stub_is_marked_once() -> None:
    """A configured answer cannot pass for a recorded one."""
    headers = ((b"content-type", b"a/b"), (b"X-Playhead", b"no"))
    assert stub_headers(headers, "rule 1") == (
        (b"content-type", b"a/b"),
        (b"x-playhead", b"stubbed; rule 1"),
    )


@given(_lines)
def test_header_values_are_safe(reason: str) -> None:
    """Whatever the reason says, one short line of ASCII is sent."""
    for headers in (refusal_headers(reason), stub_headers((), reason)):
        value = headers[-1][1]
        assert len(value) <= 300
        assert value == value.strip()
        assert all(32 <= byte < 127 for byte in value)


@example("", "", "0" * 201)
@given(_lines, _lines, _lines)
def test_a_body_is_bounded_json(target: str, reason: str, place: str) -> None:
    """Hostile texts neither break the body nor blow it up."""
    request = Request("GET", "http", "a", 80, "/" + target * 50, "HTTP/1.1", ())
    divergence = Divergence(
        DivergenceKind.CHANGED, Seq(1), "GET", request.url, None, (Difference(place, "1", "2"),), ""
    )
    body = refusal_body(request, divergence, reason)
    assert len(body) < 32_000
    assert "\n" not in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("reason", ["", "é", "\r\nSet-Cookie: a=b"])
def test_a_reason_cannot_end_its_header(reason: str) -> None:
    """No header is smuggled in through a reason."""
    assert b"\n" not in refusal_headers(reason)[-1][1]


def test_a_grpc_client_is_told_in_fields() -> None:
    """It reads no body: the status that is not retried, and our message."""
    request = replace(REQUEST, headers=((b"Content-Type", b"application/grpc+proto"),))
    fields = dict(refusal_headers("not on the täpe", request))
    assert fields[b"grpc-status"] == b"9"
    assert unquote(fields[b"grpc-message"].decode()).endswith("not on the täpe")
    assert fields[b"content-type"] == b"application/grpc"
    assert refusal_body(request, None, "not on the tape") == b""


def test_advice_that_is_too_long_for_a_message_is_left_out() -> None:
    """A part of a flag would allow something else; the receipt has it whole."""
    text = (
        f"drifted from exchange 7 in model alone; allow it with --allow-model-drift {'a' * 2000}=b"
    )
    drifted = replace(DIVERGENCE, kind=DivergenceKind.DRIFTED, text=text)
    reason = "drifted from exchange 7 in model alone"
    message = json.loads(refusal_body(REQUEST, drifted, reason))["message"]
    assert f": {reason}. Nearest" in message
    assert "--allow" not in message
