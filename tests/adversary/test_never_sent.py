"""A request that never left is no payment: no ledger, mark or count says that it was one.

What refused it (a gate, a contract), or why it was dropped (its client left while a gate held it or a fault delayed it) does not matter,
and neither does whether the run is a recording or its replay.
"""

import asyncio
import contextlib
import http.client
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.addons.recording import save
from playhead.config import (
    Config,
    EffectRule,
    FaultRule,
    Gate,
    Inject,
    Limits,
    loads,
    parse_match,
)
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.read_run import RunReader
from playhead.web.views.run_index import RunIndex, first_effects

_LONG_S, _SHORT_S = 20.0, 0.3
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
_PAY = parse_match("POST *://*/pay")
_NONE = "no answer"


class Payments:
    """Counts what reaches it."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, conversation: Conversation) -> None:
        self.count += 1
        await conversation.say(_OK)


Pay = Callable[[float], Awaitable[str]]


def _payer(running: Running, origin: RawOrigin) -> Pay:
    """Give what pays: it takes how long the client waits, and gives the status."""
    place = urlsplit(running.url)

    def send(patience_s: float) -> str:
        connection = http.client.HTTPConnection(
            place.hostname or "", place.port, timeout=patience_s
        )
        fields = {"Content-Type": "application/json", "Proxy-Authorization": "Basic dGFwZTp4"}
        try:
            connection.request("POST", f"{origin.url}/pay", '{"amount": 4900}', fields)
            return str(connection.getresponse().status)
        except TimeoutError:
            return _NONE
        finally:
            connection.close()

    return lambda patience_s: asyncio.to_thread(send, patience_s)


def _receipt(running: Running, run: str) -> Receipt:
    return build(running.store, running.store.runs.get(run))


def _refusing(how: str) -> Config:
    gate = Gate(deadline_s=_LONG_S if how == "left" else 0.01)
    if how == "contract":
        # A limit on repeats has it compared, too.
        rule = "match: POST *://*/pay, request: {type: object, required: [currency]}"
        return loads(f"contracts: [{{{rule}, on_violation: refuse}}]\nlimits: {{repeats: 20}}")
    return Config(effects=(EffectRule(_PAY, gate=gate),))


@pytest.mark.parametrize("how", ["gate", "contract", "left"])
async def test_what_was_refused_is_repeated_by_nothing(how: str, tmp_path: Path) -> None:
    """In the recording and in its faithful replay: nothing was done, and nothing was done twice."""
    said = Payments()
    config = _refusing(how)
    with RawOrigin(said) as origin:
        async with running_engine(replace(config, store=tmp_path / "store")) as running:
            pay = _payer(running, origin)
            patience_s, status = (_SHORT_S, _NONE) if how == "left" else (_LONG_S, "424")
            for _ in range(2):
                assert await pay(patience_s) == status
                assert await running.open_run("tape").settled(_LONG_S)
            await running.end("tape")
            running.play()
            for _ in range(2):
                assert await pay(2 * patience_s) == status
                assert await running.open_run("tape@1").settled(_LONG_S)
            await running.end("tape@1")
            recorded, replayed = _receipt(running, "tape"), _receipt(running, "tape@1")
    assert said.count == 0
    assert replayed.faithful, replayed.to_json()
    for receipt in (recorded, replayed):
        assert [one.note for one in receipt.effects] == ["", ""]


async def test_what_is_dropped_while_a_fault_delays_it_is_no_payment(tmp_path: Path) -> None:
    """The fault answered it; the payment after it is the first, and the only call."""
    said = Payments()
    delay = FaultRule(_PAY, Inject.DELAY, name="slow", delay_s=60, nth=1)
    config = Config(faults=(delay,), limits=Limits(calls=1))
    with RawOrigin(said) as origin:
        async with running_engine(replace(config, store=tmp_path / "store")) as running:
            pay = _payer(running, origin)
            assert await pay(_SHORT_S) == _NONE
            assert await running.open_run("tape").settled(_LONG_S)
            assert await pay(_LONG_S) == "200"
            await running.end("tape")
            running.change(faults=())
            running.play()
            assert await pay(_SHORT_S * 2) == _NONE
            assert await running.open_run("tape@1").settled(_LONG_S)
            assert await pay(_LONG_S) == "200"
            await running.end("tape@1")
            recorded, replayed = _receipt(running, "tape"), _receipt(running, "tape@1")
    assert said.count == 1
    dropped, paid = recorded.effects
    assert (dropped.by, dropped.answered_by) == ("injected", "injected: slow")
    assert dropped.outcome == "not sent: the client had left"
    assert (paid.by, paid.outcome) == ("upstream", "200")
    assert recorded.to_json()["limits"]["used"]["calls"] == 1
    for receipt in (recorded, replayed):
        assert [one.note for one in receipt.effects] == ["", ""]


@pytest.mark.parametrize("inject", [Inject.STATUS, Inject.RESET, Inject.TIMEOUT])
async def test_what_a_fault_answers_is_no_call(inject: Inject, tmp_path: Path) -> None:
    """`limits` counts requests that leave."""
    said, seen = Payments(), Counter[str]()
    fault = FaultRule(_PAY, inject, nth=1, status=503 if inject is Inject.STATUS else 0)
    config = Config(faults=(fault,), limits=Limits(calls=1))
    with RawOrigin(said) as origin:
        async with running_engine(replace(config, store=tmp_path / "store")) as running:
            pay = _payer(running, origin)
            try:
                seen[await pay(_SHORT_S)] += 1
            except OSError:
                seen["reset"] += 1
            assert await running.open_run("tape").settled(_LONG_S)
            for _ in range(2):
                seen[await pay(_LONG_S)] += 1
            await running.end("tape")
            receipt = _receipt(running, "tape")
    assert (seen["200"], seen["424"], seen.total()) == (1, 1, 3)
    assert said.count == receipt.to_json()["limits"]["used"]["calls"] == 1


async def test_what_repeats_a_dropped_request_is_told_so_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry is logged before anybody knows that the first one is never sent; whoever reads the log knows."""
    monkeypatch.setattr(save, "_note_unsent", lambda pending: None)  # it comes too late
    said = Payments()
    delay = FaultRule(_PAY, Inject.DELAY, name="slow", delay_s=60, nth=1)
    with RawOrigin(said) as origin:
        config = Config(faults=(delay,), store=tmp_path / "store")
        async with running_engine(config) as running:
            pay = _payer(running, origin)
            assert await pay(_SHORT_S) == _NONE
            assert await running.open_run("tape").settled(_LONG_S)
            assert await pay(_LONG_S) == "200"
            await running.end("tape")
            recorded = _receipt(running, "tape")
            info = running.store.runs.get("tape")
            marks = [one.marks for one in RunReader(running.store, info).read() if one.effect]
            index = RunIndex(running.store, info)
            while index.read_log(100):
                pass
            second = Exchanges(running.store, info).get(2)
            raw = running.store.exchanges.find(info, 2)
    assert said.count == 1
    assert raw is not None
    assert raw.repeat is not None, "it was not noted while the first one was under way"
    assert [one.note for one in recorded.effects] == ["", ""]
    assert second.repeat is None
    assert not any("duplicate" in mark for of in marks for mark in of)
    assert [twice for _, _, twice in first_effects(index, 10)] == [False, False]


@pytest.mark.parametrize("inject", [Inject.STATUS, Inject.RESET, Inject.TIMEOUT])
async def test_what_a_fault_answers_is_repeated_by_nothing(inject: Inject, tmp_path: Path) -> None:
    """In the recording and in its replay; a gate on duplicates asks all the same."""
    said = Payments()
    fault = FaultRule(_PAY, inject, nth=1, status=503 if inject is Inject.STATUS else 0)
    gate = EffectRule(_PAY, gate=Gate(when="duplicates", deadline_s=0.01))
    with RawOrigin(said) as origin:
        async with running_engine(Config(faults=(fault,), store=tmp_path / "store")) as running:
            pay = _payer(running, origin)
            for run in ("tape", "tape@1"):
                with contextlib.suppress(OSError):
                    await pay(_SHORT_S)
                assert await running.open_run(run).settled(_LONG_S)
                assert await pay(_LONG_S) == "200"
                await running.end(run)
                if run == "tape":
                    running.change(faults=())
                    running.play()
            receipts = [_receipt(running, run) for run in ("tape", "tape@1")]
        assert said.count == 1
        for receipt in receipts:
            assert [one.note for one in receipt.effects] == ["", ""]
        gated = Config(faults=(fault,), effects=(gate,), store=tmp_path / "gated")
        async with running_engine(gated) as running:
            pay = _payer(running, origin)
            with contextlib.suppress(OSError):
                await pay(_SHORT_S)
            assert await running.open_run("tape").settled(_LONG_S)
            assert await pay(_LONG_S) == "424"
    assert said.count == 1
