"""Telemetry of programs: played from the tape, else discarded, and never what a replay fails over."""

import asyncio
import contextlib
import http.client
import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.config import Classes, parse_match
from playhead.tests.support.sockets import open_tunnel
from playhead.tests.support.story import Call, Story, recorded

OTLP = Call("POST /otlp/v1/metrics", {"resourceMetrics": [{"resource": {"n": 1}}]}, {"accepted": 1})
PAGE = Call("GET /page")


async def test_telemetry_comes_from_the_tape_or_is_discarded(store_dir: Path) -> None:
    """Another body gets the recorded answer; what the tape never had gets an empty success. The replay is faithful."""
    async with recorded(store_dir, [PAGE, OTLP]) as story:
        again = Call("POST /otlp/v1/metrics", {"resourceMetrics": [{"resource": {"n": 2}}]})
        new = Call("POST /otlp/v1/traces", {"resourceSpans": [{"resource": {"n": 3}}]})
        page, known, repeated, unknown = await story.play([PAGE, again, again, new])
        receipt = await story.end()
    assert [one.status for one in (page, known, repeated, unknown)] == [200, 200, 200, 200]
    assert known.body == repeated.body == b'{"accepted": 1}'
    assert unknown.body == b"{}"
    assert unknown.headers["x-playhead"].startswith("discarded; ")
    assert receipt.faithful
    assert (receipt.effects, receipt.divergences, receipt.refused) == ([], [], [])
    assert receipt.telemetry == {"served": 2, "discarded": 1}


async def test_what_is_no_report_is_an_effect_at_the_same_path(store_dir: Path) -> None:
    """A shop may take orders where others take metrics: another one is no telemetry that is served or discarded."""
    order = Call("POST /otlp/v1/metrics", {"order": 1})
    async with recorded(store_dir, [PAGE, OTLP, order]) as story:
        said = await story.play([PAGE, OTLP, Call(order.what, {"order": 2})])
        receipt = await story.end()
    assert said[-1].headers["x-playhead"].startswith("stubbed; ")
    assert [row.by for row in receipt.effects] == ["recorded"]
    assert receipt.counts["unused"] == 1
    assert receipt.telemetry == {"served": 1}
    assert not receipt.faithful


async def test_telemetry_is_left_out_of_what_is_unused(store_dir: Path) -> None:
    """An exporter that had no time to report changes nothing."""
    async with recorded(store_dir, [PAGE, OTLP]) as story:
        await story.play([PAGE])
        receipt = await story.end()
    assert receipt.faithful


PAY = Call("POST /t/pay", {"amount": 1})


@pytest.mark.parametrize("classes", [Classes(), Classes(effect=(parse_match("POST *://*/t/pay"),))])
async def test_an_effect_that_was_recorded_as_telemetry_is_missed(
    store_dir: Path, classes: Classes
) -> None:
    """A pattern was too wide, and is corrected: who does not ask for it any more is not faithful."""
    declared = {"classes": Classes(telemetry=(parse_match("POST *://*/t/*"),))}
    async with recorded(store_dir, [PAGE, PAY], declared, classes=classes) as story:
        await story.play([PAGE])
        receipt = await story.end()
    assert [row["seq"] for row in receipt.unused] == [2]
    assert not receipt.faithful


async def test_an_effect_that_is_telemetry_by_now_may_be_left_out(store_dir: Path) -> None:
    """The same the other way round."""
    async with recorded(store_dir, [PAGE, PAY], {"classes": Classes()}, classes=DECLARED) as story:
        await story.play([PAGE])
        receipt = await story.end()
    assert receipt.unused == []
    assert receipt.faithful


def _fails(story: Story, what: str) -> None:
    place = urlsplit(story.running.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    method, path = what.split()
    headers = {"Proxy-Authorization": "Basic dGFwZTp4"}
    connection.request(method, f"http://127.0.0.1:{story.port}{path}", headers=headers)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()


DECLARED = Classes(telemetry=(parse_match("*://*/t/*"),))


async def test_a_question_of_telemetry_fails_as_on_a_machine_that_is_offline(
    store_dir: Path,
) -> None:
    """An answer would be made up: the connection ends, and the replay is faithful."""
    async with recorded(store_dir, [PAGE], classes=DECLARED) as story:
        await story.play([PAGE])
        await story.off_loop(_fails, "GET /t/update")
        receipt = await story.end()
    assert receipt.faithful
    assert receipt.telemetry == {"discarded": 1}
    assert receipt.faults == []


async def test_a_deletion_is_refused_whatever_it_is_declared_as(store_dir: Path) -> None:
    """A refused DELETE is a divergence."""
    async with recorded(store_dir, [PAGE], classes=DECLARED) as story:
        _, refused = await story.play([PAGE, Call("DELETE /t/runs/1")])
        receipt = await story.end()
    assert refused.status == 424
    assert not receipt.faithful
    assert [(row["method"], row["kind"]) for row in receipt.divergences] == [
        ("DELETE", "unexpected")
    ]


_EXPORT = """
import os, sys, grpc
roots = open(sys.argv[1], "rb").read()
with grpc.secure_channel("collector.example.com:4317", grpc.ssl_channel_credentials(roots)) as channel:
    call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
    print(call(b"spans", timeout=20))
"""


async def test_an_exporter_over_grpc_takes_what_it_sent_for_delivered(store_dir: Path) -> None:
    """The real library reads one empty message and the status OK."""
    pytest.importorskip("grpc")
    async with recorded(store_dir, [PAGE]) as story:
        await story.play([PAGE])
        running = story.running
        proxy = running.url_for("tape")
        exporter = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _EXPORT, str(running.ca)),
            env={**os.environ, "https_proxy": proxy, "no_proxy": "", "no_grpc_proxy": ""},
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await asyncio.wait_for(exporter.communicate(), 60)
        receipt = await story.end()
    assert said == b"b''\n"
    assert receipt.telemetry == {"discarded": 1}
    assert receipt.faithful


@pytest.mark.parametrize("tries", [0, 1, 2, 3])
async def test_how_often_a_failed_tunnel_is_tried_again_means_nothing(
    store_dir: Path, tries: int
) -> None:
    """A collector that is down: fewer attempts than were recorded, and more, change nothing."""

    def connect(story: Story) -> None:
        with contextlib.suppress(OSError):
            ca = story.running.ca
            open_tunnel(story.running.url_for("tape"), url, ca, 10).close()

    async def begin(story: Story) -> None:
        for _ in range(2):
            await story.off_loop(connect)

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        url = f"https://127.0.0.1:{closed.getsockname()[1]}"
        classes = Classes(telemetry=(parse_match(f"POST {url}/*"),))
        async with recorded(
            store_dir, [PAGE], {"classes": classes}, begin, classes=classes
        ) as story:
            await story.play([PAGE])
            for _ in range(tries):
                await story.off_loop(connect)
            receipt = await story.end()
    assert receipt.faithful, receipt.to_json()["divergences"]
    assert receipt.telemetry["served"] == min(tries, 2)
    assert receipt.unused == []
