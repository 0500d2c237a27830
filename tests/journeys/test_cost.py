"""The ledger of a real recording agrees with what its upstream counted: request by request, token by token, to the cent."""

import asyncio
import ssl
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from playhead.config import Config, FaultRule, Inject, parse_match
from playhead.tests.adversary.planted.cost import cost, dollars
from playhead.tests.adversary.planted.wire import encode, is_events
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.timeline.cost.ledger import Entry, read_ledger
from playhead.timeline.cost.sums import Bill
from playhead.timeline.reading.request_fate import Fate
from playhead.timeline.state.calls_before import Exchanges

CASES = cost(50 if FULL else 2)
REFUSED = FaultRule(parse_match("POST *://*/*?refused"), Inject.STATUS, status=503)


class Upstream:
    """Answers as planted, and counts what it was asked and what that took."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tokens: Counter[str] = Counter()
        self.planted = {
            f"{case['id']} {one['seq']}": (one, truth)
            for case in CASES
            for one, truth in zip(case["run"], case["truth"]["requests"], strict=True)
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        name = request.headers["x-planted"]
        self.asked.append(name)
        planted, truth = self.planted[name]
        for key in ("input", "read", "written", "output"):
            self.tokens[key] += truth[key]
        headers = {"content-type": planted["response_headers"]["content-type"]}
        body = planted["response"]
        if not is_events(body):
            return web.Response(status=planted["status"], body=encode(body), headers=headers)
        answer = web.StreamResponse(status=planted["status"], headers=headers)
        await answer.prepare(request)
        for event in body:
            await answer.write(encode([event]))
        if planted.get("cut"):
            await asyncio.sleep(0)  # what was written is on its way
            assert request.transport is not None
            request.transport.close()
        return answer


def send(running: Running, url: str) -> None:
    """Send everything that was planted, one request after another."""
    import httpx

    trusted = ssl.create_default_context(cafile=str(running.ca))
    proxy = running.url_for("tape")
    with httpx.Client(proxy=proxy, verify=trusted, timeout=20, trust_env=False) as client:
        for case in CASES:
            for one in case["run"]:
                split = urlsplit(one["url"])
                path = (
                    f"{split.path}?refused"
                    if one.get("refused")
                    else one["url"].partition(split.netloc)[2]
                )
                fields = one["request_headers"] | {"x-planted": f"{case['id']} {one['seq']}"}
                try:
                    client.request(
                        one["method"], url + path, content=encode(one["request"]), headers=fields
                    )
                except httpx.RemoteProtocolError:
                    assert one.get("cut")


async def test_the_ledger_is_what_the_upstream_counted(
    store_dir: Path, certificates: Certificates
) -> None:
    """Every request that the upstream had is counted once, with its tokens; what it never had is not."""
    pytest.importorskip("httpx")
    upstream = Upstream()
    config = Config(store=store_dir, upstream_ca=certificates.root, faults=(REFUSED,))
    with Origin({"/{path:.*}": upstream.answer}, certificates) as origin:
        async with running_engine(config) as running:
            await asyncio.to_thread(send, running, f"https://localhost:{origin.port}")
            await running.end("tape")
            run = running.store.runs.get("tape")
            entries = list(read_ledger(Exchanges(running.store, run), lanes=False))
    truths = [one for case in CASES for one in case["truth"]["requests"]]
    assert len(entries) == len(truths)
    sent = [one for one in entries if one.fate is Fate.SENT]
    assert len(sent) == len(upstream.asked) == len(set(upstream.asked))
    bill = Bill("model")
    bill.add("tape", entries)
    tokens = bill.spent.tokens
    counted = {"input": tokens.input, "read": tokens.read}
    counted |= {"written": tokens.written, "output": tokens.output}
    assert counted == dict(upstream.tokens)
    assert [one.at_least for one in entries] == [truth["at_least"] for truth in truths]
    _check_prices(entries, truths)


def _check_prices(entries: list[Entry], truths: list[dict[str, Any]]) -> None:
    pytest.importorskip("genai_prices")
    for one, truth in zip(entries, truths, strict=True):
        assert one.usd == dollars(truth | {"started_ms": one.at_ns / 1e6})
