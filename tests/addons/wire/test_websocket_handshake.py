"""The handshake of a WebSocket: what is offered, what is agreed on, and what is answered a second time."""

from dataclasses import replace

import pytest

from playhead.addons.wire.websocket_handshake import (
    Deflate,
    accept_key,
    answer_again,
    find_deflate,
    is_upgrade,
    known_offers,
)
from playhead.tape.exchange import Headers, RawResponse, Request, Response
from playhead.tests.support.exchanges import raw_response

DEFLATE = b"permessage-deflate; client_max_window_bits"


def ask(key: bytes = b"dGhlIHNhbXBsZSBub25jZQ==", *more: tuple[bytes, bytes]) -> Request:
    headers = ((b"Upgrade", b"websocket"), (b"Sec-WebSocket-Key", key), *more)
    return Request("GET", "https", "a.example", 443, "/", "HTTP/1.1", headers)


def answer(request: Request, *more: tuple[bytes, bytes]) -> Response:
    headers = ((b"Sec-WebSocket-ACCEPT", accept_key(request)), (b"X-Same", b"1"), *more)
    return Response(101, b"Switching Protocols", "HTTP/1.1", headers, b"", 7)


def test_the_key_of_the_standard_is_accepted() -> None:
    """The example of RFC 6455 section 1.3."""
    assert accept_key(ask()) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (((b"Upgrade", b"WebSocket"),), True),
        (((b"upgrade", b" websocket "),), True),
        (((b"upgrade", b"h2c"),), False),
        ((), False),
    ],
)
def test_an_upgrade_is_one_to_a_websocket(headers: Headers, expected: bool) -> None:
    """Of another protocol nothing is known here."""
    assert is_upgrade(headers) is expected


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ([], None),
        (["permessage-deflate; client_max_window_bits"], None),
        (["permessage-deflate;a=1, permessage-deflate"], None),
        (["permessage-bzip2, permessage-deflate; b"], ["permessage-deflate; b"]),
        (["x-webkit-deflate-frame", "bbf-usp-protocol"], []),
        (["permessage-deflate-2"], []),
    ],
)
def test_only_what_can_be_read_is_offered(values: list[str], known: list[str] | None) -> None:
    """None where nothing has to be changed."""
    assert known_offers(values) == known


@pytest.mark.parametrize(
    ("value", "agreed"),
    [
        (b"permessage-deflate", Deflate()),
        (b"permessage-deflate; server_no_context_takeover", Deflate(True, False)),
        (
            b'Permessage-Deflate;client_no_context_takeover ; server_max_window_bits="10"',
            Deflate(False, True, 10),
        ),
        (b"permessage-deflate; server_max_window_bits=ten", Deflate()),
        (b"permessage-bzip2", None),
    ],
)
def test_what_was_agreed_on_is_read(value: bytes, agreed: Deflate | None) -> None:
    """Parameters that change nothing for a reader are passed over."""
    assert find_deflate(((b"Sec-WebSocket-Extensions", value),)) == agreed


def test_nothing_agreed_on_is_no_compression() -> None:
    """An answer without the field."""
    assert find_deflate(()) is None


def test_a_new_key_is_accepted_and_all_else_stays() -> None:
    """In place, with the name as it was written."""
    extensions = (b"Sec-WebSocket-Extensions", DEFLATE)
    recorded = ask(b"a2V5", extensions)
    again = ask(b"b3RoZXI=", (b"sec-websocket-extensions", DEFLATE.replace(b" ", b"")))
    made = answer_again(recorded, answer(recorded, extensions), again)
    assert isinstance(made, Response)
    expected = answer(again, extensions)
    assert made == expected


def test_a_wrong_acceptance_stays_wrong() -> None:
    """The client turned it down, and will again."""
    wrong = answer(ask(b"of another"))
    made = answer_again(ask(), wrong, ask(b"new"))
    assert isinstance(made, Response)
    assert made.headers == wrong.headers


def test_who_offers_something_else_is_not_compressed_to() -> None:
    """It could not read it."""
    recorded = ask(b"a2V5", (b"Sec-WebSocket-Extensions", DEFLATE))
    response = answer(recorded, (b"Sec-WebSocket-Extensions", b"permessage-deflate"))
    made = answer_again(recorded, response, ask(b"a2V5"))
    assert isinstance(made, Response)
    assert find_deflate(made.headers) is None


@pytest.mark.parametrize(("offers", "fits"), [(b"a, realtime", True), (b"a", False), (b"", False)])
def test_a_subprotocol_has_to_be_offered_again(offers: bytes, fits: bool) -> None:
    """A client that did not ask for it would end the connection, and could not say why."""
    recorded = ask(b"a2V5", (b"Sec-WebSocket-Protocol", b"realtime"))
    response = answer(recorded, (b"Sec-WebSocket-Protocol", b"realtime"))
    again = ask(b"a2V5", (b"Sec-WebSocket-Protocol", offers))
    made = answer_again(recorded, response, again)
    assert isinstance(made, Response) is fits
    if not fits:
        assert "'realtime'" in str(made)


def test_an_answer_as_it_came_stays_one() -> None:
    """What is made of it is of its type: it may be given, and neither kept nor shown."""
    came = raw_response(answer(ask(), (b"Set-Cookie", b"sid=1")))
    made = answer_again(ask(), came, ask(b"b3RoZXI="))
    assert isinstance(made, RawResponse)
    assert (b"Set-Cookie", b"sid=1") in made.headers


def test_only_the_head_of_an_answer_is_given_again() -> None:
    """The body of a handshake's answer is what follows it, and is played by itself."""
    response = replace(answer(ask()), body=b"x", trailers=((b"a", b"b"),))
    made = answer_again(ask(), response, ask())
    assert isinstance(made, Response)
    assert (made.body, made.trailers) == (b"", ())
