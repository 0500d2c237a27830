"""What the kernel says of a client before anything is read: whether it has left, and whether something has come."""

import socket
from collections.abc import Callable, Iterator

import pytest

from playhead.addons.wire.client_socket_state import count_unread, heard, is_readable, is_shut

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Our end of a connection, and the client's."""
    ours, client = socket.socketpair()
    with ours, client:
        yield ours, client


@pytest.mark.parametrize(
    ("act", "shut", "readable", "unread"),
    [
        (lambda client: None, False, False, 0),
        (lambda client: client.send(b"abc"), False, True, 3),
        (lambda client: client.shutdown(socket.SHUT_WR), True, True, 0),
        (lambda client: (client.send(b"abc"), client.close()), True, True, 3),
        (lambda client: client.close(), True, True, 0),
    ],
)
def test_what_a_client_did_last_is_seen(
    act: Callable[[socket.socket], object], shut: bool, readable: bool, unread: int, pair: Pair
) -> None:
    """Its leaving whatever lies before it, also of its half of the connection."""
    ours, client = pair
    act(client)
    assert (is_shut(ours), is_readable(ours), count_unread(ours)) == (shut, readable, unread)


def test_a_socket_that_is_no_more_is_that_of_a_client_that_has_left(pair: Pair) -> None:
    """Its leaving is all that can come from it."""
    pair[0].close()
    for sock in (pair[0], None):
        assert (is_shut(sock), is_readable(sock), count_unread(sock)) == (True, True, 0)


async def test_what_has_come_is_waited_for_until_somebody_has_read_it(pair: Pair) -> None:
    """And no longer than so many turns of the loop, where nobody does."""
    ours, client = pair
    await heard(ours)
    client.send(b"abc")
    await heard(ours)
    assert count_unread(ours) == 3
