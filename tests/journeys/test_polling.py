"""An agent that polls more often than it did gets the last answer again, where a rule says so, and only there."""

import asyncio
import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.config import Config, Playback, ReadRule, parse_match
from playhead.tape.exchange import RunId
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import build

STATES = ["queued", "running", "done"]


class _Jobs:
    """Says the next state each time it is asked."""

    def __init__(self) -> None:
        self.left = list(STATES)

    async def __call__(self, conversation: Conversation) -> None:
        state = self.left.pop(0).encode()
        await conversation.say(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(state) + state
        )


def _ask(running: Running, base: str, method: str) -> str:
    place = urlsplit(running.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        headers = {"Proxy-Authorization": "Basic am9iczp4"}
        connection.request(method, f"{base}/jobs/1", headers=headers)
        response = connection.getresponse()
        body = response.read().decode()
        return body if response.status == 200 else str(response.status)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "pattern", "expected"),
    [
        ("GET", "GET http://*/jobs/*", [*STATES, "done", "done"]),
        ("GET", "GET http://*/other", [*STATES, "424", "424"]),
        ("POST", "http://*/jobs/*", [*STATES, "424", "424"]),
    ],
)
async def test_a_declared_poll_is_answered_for_as_long_as_it_asks(
    store_dir: Path, method: str, pattern: str, expected: list[str]
) -> None:
    """The last answer again, counted as such; an effect is never answered twice."""
    rule = ReadRule(parse_match(pattern), "last")
    config = Config(store=store_dir, reads=(rule,), playback=Playback(effects="refuse"))
    with RawOrigin(_Jobs()) as origin:
        async with running_engine(config) as running:

            async def ask() -> str:
                return await asyncio.to_thread(_ask, running, origin.url, method)

            assert [await ask() for _ in STATES] == STATES
            await running.end("jobs")
            running.play()
            assert [await ask() for _ in expected] == expected
            await running.end("jobs@1")
            receipt = build(running.store, running.store.runs.get(RunId("jobs@1")))
    again = expected.count("done") - 1
    assert receipt.matched == {"exact": 3, **({"repeated": again} if again else {})}
    assert receipt.faithful is (again > 0)
