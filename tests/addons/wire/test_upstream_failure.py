"""The fault that the engine's words tell of: its kind, how far the exchange had come, and how the client is ended."""

import pytest

from playhead.addons.wire.upstream_failure import DENIED, NOT_SENT, find_fault, find_stream_code
from playhead.tape.exchange import Ending, FaultKind, Phase, RedactedText


@pytest.mark.parametrize(
    ("text", "phase", "kind"),
    [
        ("[Errno 111] Connect call failed", Phase.CONNECT, FaultKind.REFUSED),
        ("Connection Refused", Phase.CONNECT, FaultKind.REFUSED),
        ("[Errno -2] Name or service not known", Phase.CONNECT, FaultKind.DNS),
        ("Temporary failure in name resolution", Phase.CONNECT, FaultKind.DNS),
        ("socket.getaddrinfo failed", Phase.CONNECT, FaultKind.DNS),
        ("nodename nor servname provided", Phase.CONNECT, FaultKind.DNS),
        ("No address associated with hostname", Phase.CONNECT, FaultKind.DNS),
        ("connection timed out", Phase.CONNECT, FaultKind.TIMEOUT),
        ("no route to host", Phase.CONNECT, FaultKind.UNKNOWN),
        ("", Phase.CONNECT, FaultKind.UNKNOWN),
        ("certificate verify failed", Phase.TLS, FaultKind.TLS),
        ("connection timed out", Phase.TLS, FaultKind.TLS),
        ("connection closed", Phase.REQUEST, FaultKind.RESET),
        ("connection closed", Phase.HEAD, FaultKind.RESET),
        ("cannot parse answer: bad status line", Phase.HEAD, FaultKind.MALFORMED),
        ("Unexpected server response", Phase.HEAD, FaultKind.MALFORMED),
        ("Protocol error", Phase.HEAD, FaultKind.MALFORMED),
        ("a response head of more than 1 MiB", Phase.HEAD, FaultKind.MALFORMED),
        ("connection closed", Phase.BODY, FaultKind.CUT),
        ("protocol error", Phase.BODY, FaultKind.CUT),
        ("illegal chunk size", Phase.BODY, FaultKind.MALFORMED),
        ("internal error: what we did wrong", Phase.CONNECT, FaultKind.UNKNOWN),
        ("internal error: what we did wrong", Phase.BODY, FaultKind.UNKNOWN),
        (DENIED, Phase.TLS, FaultKind.DENIED),
        (f"{DENIED}: 10.0.0.1:443", Phase.HEAD, FaultKind.DENIED),
        (NOT_SENT, Phase.REQUEST, FaultKind.DENIED),
    ],
)
def test_the_kind_of_a_failure(text: str, phase: Phase, kind: FaultKind) -> None:
    """By the words, and by how far the exchange had come; what was denied had not been connected."""
    fault = find_fault(RedactedText(text), phase, Ending.FIN, 8, 77)
    expected = Phase.CONNECT if kind is FaultKind.DENIED else phase
    assert (fault.kind, fault.phase, fault.text) == (kind, expected, text)
    assert (fault.code, fault.at_us) == (8, 77)


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize(
    ("text", "phase", "same"),
    [
        ("connection closed", Phase.HEAD, True),
        ("connection closed", Phase.BODY, True),
        ("connection refused", Phase.CONNECT, False),
        ("certificate verify failed", Phase.TLS, False),
        ("cannot parse answer", Phase.HEAD, False),
        (DENIED, Phase.HEAD, False),
    ],
)
def test_a_client_is_ended_as_the_upstream_was_where_that_had_been_asked(
    text: str, phase: Phase, same: bool, ending: Ending
) -> None:
    """A reset is what it sees elsewhere."""
    fault = find_fault(RedactedText(text), phase, ending, 0, 0)
    assert fault.ending is (ending if same else Ending.RST)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("one\ntwo", "one"), ("x" * 301, "x" * 300), ("\n", "")],
)
def test_one_line_of_the_words_is_kept(text: str, kept: str) -> None:
    """The first, and not all of a long one."""
    assert find_fault(RedactedText(text), Phase.HEAD, Ending.RST, 0, 0).text == kept


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("stream reset by server (CANCEL)", "CANCEL"),
        ("stream reset by client (INTERNAL_ERROR)", "INTERNAL_ERROR"),
        ("HTTP/2 stream reset by peer (REFUSED_STREAM).", "REFUSED_STREAM"),
        ("stream reset by server", None),
        ("connection reset by peer", None),
        ("", None),
    ],
)
def test_the_code_of_a_stream_that_was_reset(text: str, code: str | None) -> None:
    """Of one stream, and not of its connection."""
    assert find_stream_code(text) == code
