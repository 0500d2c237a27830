"""gRPC: every sort of call, recorded, and replayed with the server stopped.

What is compared is what the real library reports: messages, status codes, details, metadata before and after.
"""

import json
import os
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.wire.upstream_failure import NOT_SENT
from playhead.proxy.trust.environment import environment
from playhead.store import Store
from playhead.tape.exchange import Exchange
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.grpc_server import LARGE_BYTES, MESSAGES, PACE_S, GrpcOrigin
from playhead.tests.support.process import Serve
from playhead.timeline import Receipt, build, render_receipt

PROGRAM = Path(__file__).with_name("clients") / "grpc_client.py"
IMPORTS = ("grpc.experimental", "grpc._channel", "playhead.tests.journeys.clients.transcript")
OVER = ("tls", "plain")
ROUNDS = {
    **({"as-recorded": "instant"} if os.environ.get("PLAYHEAD_FULL") else {}),
    "another-order": "recorded",
    "another-word": "instant",
}
"""How the client differs on each replay, and the pace of it."""
EXPECTED = {
    "unary": "OK",
    "empty": "OK",
    "compressed": "OK",
    "large": "OK",
    "trailers only": "NOT_FOUND",
    "unimplemented": "UNIMPLEMENTED",
    "server stream": "OK",
    "error after data": "DATA_LOSS",
    "heard": "OK",
    "greeted": "OK",
    "client stream": "OK",
    "left open": "DEADLINE_EXCEEDED",
    "bidi": "OK",
    **{f"parallel payload {number}": "OK" for number in range(8)},
    "deadline": "DEADLINE_EXCEEDED",
    "cancelled": "CANCELLED",
}
"""Every call, and the code in which it ends."""


@dataclass
class Outcome:
    """What came of all calls over one transport."""

    direct: dict[str, Any]
    """What the client reports without a proxy."""
    recorded: dict[str, Any]
    replayed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By how the client differed."""
    receipts: dict[str, Receipt] = field(default_factory=dict)
    tape: list[Exchange] = field(default_factory=list)


def _call(over: str, port: int, how: str, env: dict[str, str]) -> dict[str, Any]:
    """Make every call; give what was reported, by case."""
    command = [sys.executable, str(PROGRAM), over, f"127.0.0.1:{port}", how]
    done = prepared.run(command, imports=IMPORTS, text=True, timeout=50, env=env, process_group=0)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {lines[-1:]}: {done.stderr}"
    return {line.pop("case"): line for line in lines}


def _environment(proxy: Serve | None, run: str, store: Path, root: Path) -> dict[str, str]:
    if proxy is None:
        return {**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(root)}
    with _ONE_AT_A_TIME:
        return environment(os.environ, proxy_url=proxy.url_for(run), public_dir=store / "ca")


_ONE_AT_A_TIME = threading.Lock()
"""Which warnings are shown is one setting for all threads."""


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> dict[str, Outcome]:
    """Make every call over each transport: directly, recorded, replayed in several ways."""
    folder = tmp_path_factory.mktemp("grpc")
    store = folder / "store"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)

    def call(proxy: Serve | None, over: str, how: str = "as-recorded") -> dict[str, Any]:
        env = _environment(proxy, over, store, certificates.root)
        return _call(over, origin.ports[over], how, env)

    def at_once(proxy: Serve | None, how: str = "as-recorded") -> Iterable[dict[str, Any]]:
        with ThreadPoolExecutor(len(OVER)) as pool:
            return list(pool.map(lambda over: call(proxy, over, how), OVER))

    with GrpcOrigin(certificates) as origin:
        direct = at_once(None)
        with Serve("--mode", "record", *flags) as proxy:
            recorded = at_once(proxy)
        origin.stop()
        found = {
            over: Outcome(without, seen)
            for over, without, seen in zip(OVER, direct, recorded, strict=True)
        }
        for how, pace in ROUNDS.items():
            paced = folder / f"{how}.yaml"
            paced.write_text(f"mode: playback\nplayback: {{pace: {pace}}}\n")
            with Serve("-c", paced, *flags) as proxy:
                for over, report in zip(OVER, at_once(proxy, how), strict=True):
                    found[over].replayed[how] = report
    with Store.open(store, readonly=True) as opened:
        for over, outcome in found.items():
            outcome.tape = list(opened.exchanges.all(opened.runs.get(over)))
            for number, how in enumerate(ROUNDS, 1):
                outcome.receipts[how] = build(opened, opened.runs.get(f"{over}@{number}"))
    return found


FAITHFUL = [how for how in ROUNDS if how != "another-word"]


@pytest.mark.parametrize("case", EXPECTED)
@pytest.mark.parametrize("over", OVER)
def test_a_recorded_call_is_as_without_a_proxy(
    outcomes: dict[str, Outcome], over: str, case: str
) -> None:
    """Messages, code, details and metadata: as the server sent them."""
    outcome = outcomes[over]
    assert outcome.direct[case]["code"] == EXPECTED[case]
    assert outcome.recorded[case] == outcome.direct[case]


@pytest.mark.parametrize("case", EXPECTED)
@pytest.mark.parametrize("how", FAITHFUL)
@pytest.mark.parametrize("over", OVER)
def test_a_replayed_call_is_as_recorded(
    outcomes: dict[str, Outcome], over: str, how: str, case: str
) -> None:
    """Also where parallel calls come in another order, and at the recorded pace."""
    outcome = outcomes[over]
    assert outcome.replayed[how][case] == outcome.recorded[case]


@pytest.mark.parametrize("how", FAITHFUL)
@pytest.mark.parametrize("over", OVER)
def test_a_replay_of_calls_is_faithful(outcomes: dict[str, Outcome], over: str, how: str) -> None:
    """The whole tape is used, and nothing else asked for."""
    outcome = outcomes[over]
    receipt = outcome.receipts[how]
    assert receipt.faithful is True, render_receipt(receipt)
    assert receipt.counts["served"] == len(outcome.tape) == len(EXPECTED)


@pytest.mark.parametrize("over", OVER)
def test_what_the_calls_are_here_for(outcomes: dict[str, Outcome], over: str) -> None:
    """Large messages, binary metadata, errors after data, a dialogue: they did happen."""
    recorded = outcomes[over].recorded
    assert recorded["unary"]["messages"] == ["cba"]
    assert ["bytes-bin", bytes(range(256)).hex()] in recorded["unary"]["initial"]
    assert ["x-trailing", "this, that"] in recorded["unary"]["trailing"]
    assert recorded["large"]["messages"][0].startswith(f"{LARGE_BYTES} ")
    assert recorded["trailers only"]["details"] == "no such thing, grüße & 100%"
    assert ["why-bin", "00ff"] in recorded["trailers only"]["trailing"]
    streamed = [message.decode() for message in MESSAGES]
    assert recorded["server stream"]["messages"] == streamed
    assert recorded["error after data"]["messages"] == streamed[:2]
    assert recorded["cancelled"]["messages"] == streamed[:2]
    assert len(recorded["bidi"]["messages"]) == 5
    assert ["x-count", "5"] in recorded["bidi"]["trailing"]


@pytest.mark.parametrize("over", OVER)
def test_the_tape_keeps_messages_apart_and_trailers_as_trailers(
    outcomes: dict[str, Outcome], over: str
) -> None:
    """Each message of a paced stream is a piece at its time; a dialogue's answers say what they followed."""
    tape = {exchange.request.path.rpartition("/")[2]: exchange for exchange in outcomes[over].tape}
    stream = tape["Stream"].response
    assert stream is not None
    assert [chunk.size for chunk in stream.chunks] == [5 + len(message) for message in MESSAGES]
    gaps = [
        after.at_us - before.at_us
        for before, after in zip(stream.chunks, stream.chunks[1:], strict=False)
    ]
    # Of four: one may be short where the machine was busy.
    assert sorted(gaps)[1] > PACE_S * 0.5e6
    assert (b"grpc-status", b"0") in stream.trailers
    dialogue = tape["Bidi"].response
    assert dialogue is not None
    needs = [chunk.need for chunk in dialogue.chunks]
    assert needs == sorted(set(needs))
    assert needs[0] > 0
    assert tape["Endless"].gone is not None
    assert tape["Endless"].gone.chunks == 2


@pytest.mark.parametrize("over", OVER)
def test_a_stream_keeps_its_pace_where_that_is_asked_for(
    outcomes: dict[str, Outcome], over: str
) -> None:
    """At the recorded pace it takes no less than it took."""
    outcome = outcomes[over]
    least_s = PACE_S * (len(MESSAGES) - 1) * 0.8
    seen = [
        outcome.recorded,
        *(outcome.replayed[how] for how in ROUNDS if ROUNDS[how] == "recorded"),
    ]
    assert len(seen) == 2
    assert all(report["server stream, time"]["took_s"] >= least_s for report in seen)


@pytest.mark.parametrize("over", OVER)
def test_another_word_in_a_dialogue_ends_in_an_error_and_a_divergence(
    outcomes: dict[str, Outcome], over: str
) -> None:
    """What was said before was the tape's and is answered; what the tape does not hold is not."""
    outcome = outcomes[over]
    said, recorded = outcome.replayed["another-word"], outcome.recorded
    assert said["bidi"]["code"] not in ("OK", "DEADLINE_EXCEEDED")
    messages = said["bidi"]["messages"]
    assert messages == recorded["bidi"]["messages"][: len(messages)]
    assert len(messages) < 5
    receipt = outcome.receipts["another-word"]
    assert receipt.faithful is False
    assert [divergence["url"].rpartition("/")[2] for divergence in receipt.divergences] == ["Bidi"]
    for case in EXPECTED:
        assert case == "bidi" or said[case] == recorded[case]


@pytest.mark.parametrize("over", OVER)
def test_no_call_that_the_server_had_is_called_not_sent(
    outcomes: dict[str, Outcome], over: str
) -> None:
    """One that its client gave up may have been executed: its receipt has to say so."""
    tape = outcomes[over].tape
    assert any(exchange.gone is not None for exchange in tape)
    assert [
        exchange.seq for exchange in tape if exchange.fault and exchange.fault.text == NOT_SENT
    ] == []
