"""Effects told as they happen: to a file and to a receiver, while recording and in playback."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from playhead.addons.run.effect_sinks import SinkQueue
from playhead.config import Answer, Config, EffectRule, Sink, parse_match
from playhead.tape.exchange import RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.early import ask_by_halves
from playhead.tests.support.engine import running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.origins import Origin
from playhead.tests.support.story import Call, Said, recorded
from playhead.timeline.receipts.effects import effects_of

REFUND = {"charge": "ch_1007", "amount": 4900}
PAY = Call("POST /v1/refunds", REFUND, {"id": "re_1Qx8", **REFUND}, {"idempotency-key": "k-1"})
LOOK = Call("GET /v1/refunds", None, "none")
OTHER = Call("POST /v1/refunds", {**REFUND, "amount": 7})
STRANGE = Call("DELETE /v1/wires/1")
MAIL = Call("POST /v1/mails", {"to": "x"})


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_each_effect_is_told_as_it_happens(tmp_path: Path) -> None:
    """To both sinks the same rows, which are those of the ledger."""
    posted: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        posted.append(await request.json())
        return web.Response()

    rule = EffectRule(parse_match("POST *://*/v1/mails"), Answer(202, (), b"queued"))
    path = tmp_path / "effects.jsonl"
    with Origin({"/hook": take}) as receiver:
        sink = Sink(path, f"{receiver.url}/hook")
        tape = [LOOK, PAY]
        async with recorded(
            tmp_path / "store", tape, recording={"sink": sink}, sink=sink, effects=(rule,)
        ) as story:
            before = len(read(path))
            await story.play([LOOK, PAY, PAY, OTHER, MAIL, STRANGE])
            receipt = await story.end()
            store = story.running.store
            ledger = [
                {"run": name, "tape": whose, **effect.to_json()}
                for name, whose in (("tape", None), ("tape@1", "tape"))
                for effect in effects_of(store, store.runs.get(RunId(name)))[0]
            ]
    rows = read(path)
    assert before == 1  # told before the run ended
    assert posted == rows == ledger
    by = [row["by"] for row in rows]
    assert by == ["upstream", "tape", "synthetic", "synthetic", "template", "refused"]
    assert [row["status"] for row in rows] == [200, 200, 200, 200, 202, 424]
    assert rows[2]["repeat"] == {"of": 2, "kind": "safe retry", "unseen": False}
    assert receipt.sink_lost == {}


async def test_an_effect_that_is_answered_before_it_has_ended_is_told_as_any(
    tmp_path: Path, certificates: Certificates
) -> None:
    """What came of it is in its row, in playback too."""

    def begin(stream: Stream) -> None:
        stream.head(("content-type", "application/grpc"))
        stream.data(b"said")

    def end(stream: Stream) -> bool:
        stream.data(b"", end=True)
        return True

    path = tmp_path / "effects.jsonl"
    config = Config(store=tmp_path / "store", upstream_ca=certificates.root, sink=Sink(path))
    with FramesOrigin(end, certificates, begin) as origin:
        async with running_engine(config) as running:
            for run in ("tape", "tape@1"):
                await asyncio.to_thread(
                    ask_by_halves, running, "tape", f"{origin.url}/say", b"said"
                )
                await running.end(run)
                running.play()
    rows = read(path)
    assert [[row[key] for key in ("by", "status", "outcome", "body")] for row in rows] == [
        ["upstream", 200, "200", "word"],
        ["tape", 200, "200", "word"],
    ]


async def test_a_dead_receiver_is_a_count_in_the_receipt(tmp_path: Path) -> None:
    """The agent's run goes on as without it."""
    with Origin({}) as receiver:
        url = f"{receiver.url}/hook"
    sink = Sink(url=url, patience_s=0.02)
    async with recorded(tmp_path / "store", [PAY], sink=sink) as story:
        said: list[Said] = await story.play([PAY, OTHER])
        receipt = await story.end()
    assert [one.status for one in said] == [200, 200]
    assert receipt.sink_lost == {"url": 2}
    assert receipt.to_json()["sink_lost"] == {"url": 2}


@pytest.mark.parametrize("full", ["goes on", "stays full"])
async def test_a_full_sink_holds_effects_back(tmp_path: Path, full: str) -> None:
    """For as long as its patience lasts; reads are never held."""
    sink = Sink(tmp_path / "effects.jsonl", patience_s=0.05 if full == "stays full" else 30.0)
    async with recorded(tmp_path / "store", [LOOK, PAY], sink=sink) as story:
        await story.play([LOOK])
        found = story.running.open_run("tape@1").sink_queue
        assert found is not None
        sink_queue: SinkQueue = found
        waited: list[str] = []

        class Full:
            """A bus that is full, and counts who waits for it."""

            full = True

            async def room(self) -> None:
                waited.append("room")
                if full == "goes on":
                    self.full = False
                else:
                    await sink_queue._until(lambda: False)

            def __getattr__(self, name: str) -> Any:
                return getattr(sink_queue, name)

        story.running.open_run("tape@1").sink_queue = Full()  # type: ignore[assignment]  # stands in
        said = await story.play([PAY, LOOK])
        receipt = await story.end()
    assert [one.status for one in said] == [200, 424]
    assert waited == ["room"]
    assert receipt.sink_lost == {}
    assert [row["by"] for row in read(tmp_path / "effects.jsonl")] == ["tape"]
