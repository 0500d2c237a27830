"""Requests whose clients leave before they have ended."""

import socket
import struct
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.tests.support.process import wait_until
from playhead.tests.support.story import Call, Story, recorded

CUT = "POST http://127.0.0.1:{port}/v1/refunds HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nProxy-Authorization: Basic dGFwZTp4\r\nExpect: 100-continue\r\n{framing}\r\n"
SIZED = ("Content-Length: 10\r\n", b"nine byte")
CHUNKED = ("Transfer-Encoding: chunked\r\n", b"4\r\nfour\r\n")


def cut(story: Story, framing: str, body: bytes) -> None:
    """Send a request without its end, and leave."""
    place = urlsplit(story.running.url)
    with socket.create_connection((place.hostname or "", place.port or 0), 10) as peer:
        head = CUT.format(port=story.port, framing=framing)
        peer.sendall(head.encode())
        assert b" 100 " in peer.recv(4096)
        peer.sendall(body)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(4096):
            pass


@pytest.mark.parametrize(("framing", "body"), [SIZED, CHUNKED], ids=["sized", "chunked"])
async def test_one_that_the_tape_does_not_have_is_a_divergence(
    framing: str, body: bytes, store_dir: Path
) -> None:
    """Nobody knows what would have become of it."""
    async with recorded(store_dir, [Call("GET /a")]) as story:
        await story.play([Call("GET /a")])
        await story.off_loop(cut, framing, body)
        receipt = await story.end()
    (row,) = receipt.divergences
    assert (row["kind"], row["method"]) == ("unexpected", "POST")
    assert row["text"].startswith("cut request")
    assert receipt.faithful is False


async def test_one_that_was_cut_while_recording_is_expected(store_dir: Path) -> None:
    """As often as it was cut then."""

    async def begin(story: Story) -> None:
        await story.off_loop(cut, *SIZED)

    async with recorded(store_dir, [Call("GET /a")], begin=begin) as story:
        await story.play([Call("GET /a")])
        await story.off_loop(cut, *SIZED)
        receipt = await story.end()
        await story.play([Call("GET /a")])
        for _ in range(2):
            await story.off_loop(cut, *SIZED)
        again = await story.end()
    assert receipt.faithful is True
    assert [row["kind"] for row in again.divergences] == ["unexpected"]


def cut_at_once(story: Story, framing: str, body: bytes, how: str) -> None:
    """Send a request without its end, and leave in the same breath: by the end of sending, a close, or a reset."""
    place = urlsplit(story.running.url)
    with socket.create_connection((place.hostname or "", place.port or 0), 10) as peer:
        head = CUT.format(port=story.port, framing=framing).replace("Expect: 100-continue\r\n", "")
        if how == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sendall(head.encode() + body)
        if how == "end":
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(4096):
                pass


@pytest.mark.parametrize("how", ["end", "close", "reset"])
@pytest.mark.parametrize(("framing", "body"), [SIZED, CHUNKED], ids=["sized", "chunked"])
async def test_one_that_ends_with_its_connection_is_noted(
    framing: str, body: bytes, how: str, store_dir: Path
) -> None:
    """Also where it is the first of its run, so that the client has left before it is known to which run it belongs."""

    async def begin(story: Story) -> None:
        await story.off_loop(cut_at_once, framing, body, how)
        await until_told(story)

    async with recorded(store_dir / "1", [Call("GET /a")], begin=begin) as story:
        await story.off_loop(cut_at_once, framing, body, how)
        await until_told(story)
        await story.play([Call("GET /a")])
        expected = await story.end()
    assert expected.faithful is True
    async with recorded(store_dir / "2", [Call("GET /a")]) as story:
        await story.off_loop(cut_at_once, framing, body, how)
        await until_told(story)
        await story.play([Call("GET /a")])
        receipt = await story.end()
    assert [row["kind"] for row in receipt.divergences] == ["unexpected"]
    assert receipt.faithful is False


async def until_told(story: Story) -> None:
    """Wait until the first request of a run has come and gone."""
    await story.off_loop(
        lambda _: wait_until(
            lambda: any(run.on_the_way.last_seq for run in story.running.registry.open)
        )
    )
    assert await story.running.registry.open[0].settled(10)


async def test_a_whole_request_whose_client_left_at_once_is_not_lost(store_dir: Path) -> None:
    """It is one that the tape does not have, though nobody waits for its answer."""
    async with recorded(store_dir, [Call("GET /a")]) as story:
        await story.off_loop(cut_at_once, "Content-Length: 9\r\n", b"nine byte", "close")
        await until_told(story)
        await story.play([Call("GET /a")])
        receipt = await story.end()
    assert [(row["kind"], row["method"]) for row in receipt.divergences] == [("unexpected", "POST")]
