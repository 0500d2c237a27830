"""Eight lanes of calls at once, in another order each time: every replay is faithful, and each lane gets the same.

1,000 replays with PLAYHEAD_FULL, 12 without.
"""

import asyncio
import hashlib
import os
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from aiohttp import BasicAuth, ClientSession, TCPConnector, web

from playhead.config import Config
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.timeline import Receipt, build

REPLAYS = 1000 if os.environ.get("PLAYHEAD_FULL") else 12
LANES, STEPS, POLLS = 8, 2, 2


class Service:
    """Answers that depend on how often it was asked, with a ticket that the next step needs."""

    def __init__(self) -> None:
        self.chance = Random(11)
        self.polls: dict[str, int] = {}

    async def step(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        # A field called `token` would be played as its placeholder.
        ticket = str(UUID(int=self.chance.getrandbits(128)))
        return web.json_response({"lane": asked["lane"], "step": asked["step"], "ticket": ticket})

    async def poll(self, request: web.Request) -> web.StreamResponse:
        """The same question, another answer each time; in pieces."""
        lane = request.query["lane"]
        self.polls[lane] = self.polls.get(lane, 0) + 1
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for piece in (
            f"data: lane {lane} ",
            f"poll {self.polls[lane]} ",
            f"{self.chance.random()}\n\n",
        ):
            await answer.write(piece.encode())
        return answer


class Agent:
    """Eight lanes at once; chance decides who goes first and how far each gets before another."""

    def __init__(self, running: Running, origin: str, chance: Random) -> None:
        self.proxy = running.url
        self.origin = origin
        self.chance = chance

    async def work(self) -> str:
        """Do the task; give a digest of what each lane got, lane by lane."""
        lanes = list(range(LANES))
        self.chance.shuffle(lanes)
        async with (
            ClientSession(connector=TCPConnector(limit=LANES)) as session,
            asyncio.TaskGroup() as group,
        ):
            tasks = {lane: group.create_task(self._lane(session, lane)) for lane in lanes}
        got = b"\n".join(tasks[lane].result() for lane in range(LANES))
        return hashlib.sha256(got).hexdigest()

    async def _lane(self, session: ClientSession, lane: int) -> bytes:
        got, ticket = [], ""
        for step in range(STEPS):
            body = {"lane": lane, "step": step, "ticket": ticket, "same": "for all"}
            told = await self._ask(session, "POST", "/step", json=body)
            ticket = told.partition(b'"ticket": "')[2][:36].decode()
            got.append(told)
            for _ in range(POLLS):
                got.append(await self._ask(session, "GET", f"/poll?lane={lane}"))
        return b"".join(got)

    async def _ask(self, session: ClientSession, method: str, path: str, **more: Any) -> bytes:
        for _ in range(self.chance.randrange(30)):
            await asyncio.sleep(0)  # lets the others go on, by chance
        async with session.request(
            method, self.origin + path, proxy=self.proxy, proxy_auth=BasicAuth("tape", "x"), **more
        ) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()


def receipt(running: Running, run: str) -> Receipt:
    return build(running.store, running.store.runs.get(run))


@pytest.mark.timeout(900)
async def test_every_replay_of_parallel_calls_is_faithful_and_the_same(tmp_path: Path) -> None:
    """With the origin gone; nothing is left on the tape."""
    service = Service()
    with Origin({"/step": service.step, "/poll": service.poll}) as origin:
        url = origin.url
        async with running_engine(Config(store=tmp_path)) as running:
            recorded = await Agent(running, url, Random(0)).work()
            await running.end("tape")
            origin.stop()
            running.play()
            orders = set()
            for number in range(1, REPLAYS + 1):
                assert await Agent(running, url, Random(number)).work() == recorded
                await running.end(f"tape@{number}")
                found = receipt(running, f"tape@{number}")
                assert found.faithful, found.to_json()
                assert found.counts["served"] == LANES * STEPS * (1 + POLLS)
                orders.add(order(running, f"tape@{number}"))
    # Else all of this would have been one replay, many times.
    assert len(orders) > REPLAYS // 2


def order(running: Running, run: str) -> tuple[int, ...]:
    """In which order a replay asked for the tape's exchanges."""
    events = running.store.events.read(running.store.runs.get(run))
    return tuple(event.data["tape_seq"] for event in events if "tape_seq" in event.data)
