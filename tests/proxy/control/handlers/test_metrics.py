"""Measures: what gates, limits, faults, stubs, live rules and sinks did is counted, in Prometheus' text format."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from playhead.config import loads
from playhead.proxy.control.handlers.metrics import METRICS
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tests.support.control import Controlled, controlled
from playhead.tests.support.raw import Conversation, RawOrigin

_LONG_S = 20.0
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
"""By the name of a measure, and its labels."""

_NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (-?[0-9.]+)")
_LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"')


def parse(text: str) -> Samples:
    """Read Prometheus' text format 0.0.4 as strictly as it is written: a family at a time, HELP, TYPE, samples."""
    found: Samples = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in found
            found[name] = {}
            kind = ""
        elif line.startswith("# TYPE "):
            _, _, named, kind = line.split(" ")
            assert (named, found[name]) == (name, {})
            assert kind in ("counter", "gauge")
            assert (kind == "counter") == name.endswith("_total")
        else:
            read = _SAMPLE.fullmatch(line)
            assert read is not None, line
            assert read[1] == name
            assert kind
            labels = tuple(_LABEL.findall(read[2] or ""))
            assert ",".join(f'{label}="{value}"' for label, value in labels) == (read[2] or "")
            assert labels not in found[name]
            found[name][labels] = float(read[3])
            assert kind == "gauge" or found[name][labels] >= 0
    return found


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[tuple[Controlled, str]]:
    """A proxy with rules of every sort, and an origin; the sink's receiver is gone."""
    with RawOrigin(_say_ok) as origin:
        text = f"""
            store: {tmp_path / "store"}
            live: [{{match: "GET {origin.url}/live", reason: the test asks}}]
            effects:
              - {{match: "POST {origin.url}/held*", gate: true}}
              - {{match: "POST {origin.url}/late*", gate: {{deadline: 10ms}}}}
              - {{match: "POST {origin.url}/answered", answer: {{text: made}}}}
            faults:
              - {{match: "GET {origin.url}/busy", inject: status, status: 503}}
              - {{match: "GET {origin.url}/slow", inject: delay, delay: 1ms}}
            limits: {{repeats: 2}}
            sink: {{url: "http://127.0.0.1:1/gone", patience: 0s}}
        """
        async with controlled(loads(text)) as made:
            yield made, origin.url


async def _ask(api: Controlled, method: str, url: str) -> int:
    import httpx

    def ask() -> int:
        proxy = api.running.url_for("tape")
        with httpx.Client(proxy=proxy, timeout=_LONG_S, trust_env=False) as client:
            return client.request(method, url).status_code

    return await asyncio.to_thread(ask)


async def _measured(api: Controlled) -> Samples:
    said = await api.ask("GET", "/metrics")
    assert said.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(said.text)


def _by_label(samples: Samples, name: str) -> dict[str, float]:
    return {labels[0][1]: count for labels, count in samples[name].items()}


async def test_what_rules_did_is_counted(api: tuple[Controlled, str]) -> None:
    """Held, approved, denied, expired; limited; injected; live, stubbed, refused; what a sink lacks."""
    proxy, url = api
    gates = proxy.running.registry.approvals
    for ruling, status in ((Ruling.APPROVED, 200), (Ruling.DENIED, 424)):
        asking = asyncio.create_task(_ask(proxy, "POST", f"{url}/held/{ruling.value}"))
        async with asyncio.timeout(_LONG_S):
            while not gates:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.001)
        (held,) = gates.listed()
        assert (await _measured(proxy))["playhead_gates_held"] == {(): 1}
        gates.decide(held.name, held.digest, ApprovalDecision(ruling, "ann", "api"))
        assert await asking == status
    assert await _ask(proxy, "POST", f"{url}/late") == 424
    assert [await _ask(proxy, "GET", f"{url}/again") for _ in range(3)] == [200, 200, 424]
    assert await _ask(proxy, "GET", f"{url}/busy") == 503
    assert await _ask(proxy, "GET", f"{url}/slow") == 200
    await proxy.running.end("tape")
    proxy.running.play()
    assert await _ask(proxy, "GET", f"{url}/live") == 200
    assert await _ask(proxy, "POST", f"{url}/answered") == 200
    assert await _ask(proxy, "GET", f"{url}/unknown") == 424
    assert await _ask(proxy, "GET", f"{url}/again") == 200
    await proxy.running.end("tape@1")

    found = await _measured(proxy)
    assert found["playhead_gates_held"] == {(): 0}
    assert _by_label(found, "playhead_gates_total") == {"approved": 1, "denied": 1, "expired": 1}
    assert _by_label(found, "playhead_limited_total") == {"repeats": 1}
    assert _by_label(found, "playhead_injected_total") == {"status": 1, "delay": 1}
    assert _by_label(found, "playhead_sink_lost_total") == {"url": 4}
    verdicts: dict[tuple[str, str], float] = {}
    for labels, count in found["playhead_requests_total"].items():
        told = dict(labels)
        key = told["mode"], told["verdict"]
        verdicts[key] = verdicts.get(key, 0) + count
    assert verdicts == {
        ("record", "forwarded"): 5,
        ("record", "refused"): 3,
        ("playback", "live"): 1,
        ("playback", "stubbed"): 1,
        ("playback", "refused"): 1,
        ("playback", "served"): 1,
    }
    assert list(found) == [metric.name for metric in METRICS]


async def test_measures_that_nothing_was_counted_for_are_there(api: tuple[Controlled, str]) -> None:
    """With their name and kind, and zero where there is no label."""
    found = await _measured(api[0])
    assert list(found) == [metric.name for metric in METRICS]
    for metric in METRICS:
        if metric.labels:
            assert metric.name == "playhead_info" or found[metric.name] == {}
        else:
            assert found[metric.name] == {(): 0}
