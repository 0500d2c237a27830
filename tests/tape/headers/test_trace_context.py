"""The trace that a request belongs to."""

import pytest

from playhead.tape.headers.trace_context import find_traces, is_same_trace, parse_trace

W3C = "4bf92f3577b34da6a3ce929d0e0e4736"
SHORT = "a3ce929d0e0e4736"
PARENT = f"00-{W3C}-00f067aa0ba902b7-01"
XRAY = "1-5759e988-bd862e3fe1be46a994272793"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"traceparent": PARENT}, (W3C,)),
        ({"Traceparent": f" {PARENT}"}, (W3C,)),
        ({"traceparent": "00-not-a-trace"}, ()),
        ({"b3": f"{W3C}-00f067aa0ba902b7-1"}, (W3C,)),
        ({"b3": "0"}, ()),
        ({"X-B3-TraceId": SHORT}, (SHORT,)),
        ({"x-amzn-trace-id": f"Self=1;Root={XRAY};Sampled=1"}, (XRAY,)),
        ({"x-cloud-trace-context": f"{W3C}/123;o=1"}, (W3C,)),
        ({"uber-trace-id": "ce929d0e0e4736:1:0:1"}, ("00ce929d0e0e4736",)),
        ({"traceparent": PARENT, "x-b3-traceid": W3C}, (W3C,)),
        ({"X-B3-TraceId": W3C.upper()}, (W3C,)),
        ({"traceparent": PARENT.upper()}, (W3C,)),
        ({"x-amzn-trace-id": f"Root={XRAY.upper()}"}, (XRAY,)),
        ({"accept": "*/*", "tracestate": "a=b"}, ()),
    ],
)
def test_the_trace_is_read_from_what_tracing_systems_send(
    fields: dict[str, str], expected: tuple[str, ...]
) -> None:
    """Each once, whatever the field; what is no trace is nothing."""
    headers = tuple((name.encode(), value.encode()) for name, value in fields.items())
    assert find_traces(headers) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (W3C, W3C),
        (PARENT, W3C),
        (W3C.upper(), W3C),
        (SHORT, SHORT),
        (XRAY, XRAY),
        (XRAY.upper(), XRAY),
    ],
)
def test_a_person_gives_an_id_or_a_whole_field(text: str, expected: str) -> None:
    """As it is copied from wherever it is seen."""
    assert parse_trace(f" {text} ") == expected


@pytest.mark.parametrize("text", ["", "x", "1234", W3C + "0", "00-12-34-56"])
def test_what_is_no_trace_says_so(text: str) -> None:
    """And what would be one."""
    with pytest.raises(ValueError, match="is no trace: expected 32 hexadecimal digits"):
        parse_trace(text)


def test_ids_of_one_trace_are_told_from_others() -> None:
    """With the hyphens of X-Ray, and shorter."""
    xray = f"1-{W3C[:8]}-{W3C[8:]}"
    assert all(is_same_trace(one, other) for one in (W3C, SHORT, xray) for other in (W3C, xray))
    assert not is_same_trace(XRAY, W3C)
