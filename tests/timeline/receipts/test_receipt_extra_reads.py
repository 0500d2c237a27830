"""Reads that a client sends from a thread: whether and how often is chance."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import RunInfo, Store
from playhead.tape.diff.divergence_types import Divergence, DivergenceKind
from playhead.tape.exchange import (
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Phase,
    RedactedText,
    RequestClass,
    Seq,
    VerdictKind,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_record,
    make_request,
    make_response,
)
from playhead.timeline import Receipt, build, exit_code

AGENT = ((b"User-Agent", b"gcloud-python/3.17.0"),)
BUCKET = "GET https://storage.googleapis.com/storage/v1/b/acme"
OBJECT = f"{BUCKET}/o/report"
OTHER = "GET https://storage.googleapis.com/storage/v1/b/other"


@pytest.fixture
async def store(store_dir: Path) -> AsyncIterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


def _read(seq: int, what: str, headers: Any = AGENT, **more: Any) -> Exchange:
    request = replace(make_request(what), headers=headers)
    return make_exchange(seq, kind=RequestClass.READ, request=request, **more)


async def _play(
    store: Store,
    *asked: tuple[str, str],
    headers: Any = AGENT,
    tape_of: tuple[tuple[str, int], ...] = ((OBJECT, 200),),
) -> Receipt:
    """Record reads, each with its status, and play what is asked: `served` or `refused`, and a request.

    What is asked first is served from the first read.
    """
    run = await store.runs.create("tape", mode="record", at_ns=1)
    for seq, (what, status) in enumerate(tape_of, 1):
        recorded = _read(seq, what, headers, response=make_response(status=status))
        if not status:
            fault = Fault(FaultKind.REFUSED, Phase.CONNECT, RedactedText("refused"), 1, Ending.RST)
            recorded = replace(recorded, response=None, fault=fault)
        store.events.append(run.number, make_intent(recorded))
        await store.exchanges.save(run.number, partial(make_record, recorded))
    tape = await store.runs.seal(run, reason="done", at_ns=2)
    played: RunInfo = await store.runs.create("tape", mode="playback", at_ns=3, parent=tape)
    for seq, (verdict, what) in enumerate(asked, 1):
        exchange = _read(seq, what, headers, verdict=VerdictKind(verdict))
        request = exchange.request
        data = {
            "seq": seq,
            "method": request.method,
            "url": request.url,
            "request_class": "read",
            "verdict": verdict,
            "reason": "not on the tape",
            "fingerprint": exchange.fingerprint,
            "key": None,
        }
        if verdict == "served":
            data |= {"tape_seq": 1, "match": "exact"}
        store.events.append(played.number, Event(EventKind.VERDICT, 3, data))
        if verdict == "refused":
            await store.exchanges.save(played.number, partial(make_record, exchange, final=False))
            kind = DivergenceKind.UNEXPECTED
            row = Divergence(kind, Seq(seq), request.method, request.url, None).to_json()
            store.events.append(
                played.number, Event(EventKind.DIVERGED, 3, {"seq": seq, "divergence": row})
            )
    return build(store, await store.runs.seal(played, reason="done", at_ns=4))


async def test_an_extra_read_at_the_end_is_reported_alone(store: Store) -> None:
    """It was refused, and is neither a divergence nor a refusal that counts."""
    receipt = await _play(store, ("served", OBJECT), ("refused", BUCKET))
    assert (receipt.divergences, receipt.refused, receipt.root) == ([], [], None)
    assert [(row["seq"], row["sdk"], row["extra"]) for row in receipt.background] == [
        (2, "google-cloud-storage", True)
    ]
    assert exit_code(receipt) == 0


@pytest.mark.parametrize(
    "asked",
    [
        # something follows it
        (("refused", BUCKET), ("served", OBJECT)),
        # about a bucket that the tape does not know
        (("served", OBJECT), ("refused", OTHER)),
        # no such read
        (("served", OBJECT), ("refused", f"{BUCKET}/o")),
    ],
)
async def test_any_other_read_diverges(store: Store, asked: tuple[tuple[str, str], ...]) -> None:
    """As ever: refused, and red."""
    receipt = await _play(store, *asked)
    assert len(receipt.divergences) == len(receipt.refused) == 1
    assert receipt.background == []
    assert exit_code(receipt) == 121


async def test_who_is_not_the_sdk_diverges(store: Store) -> None:
    """The profile is one of place and `User-Agent` together."""
    curl = ((b"User-Agent", b"curl/8"),)
    receipt = await _play(store, ("served", OBJECT), ("refused", BUCKET), headers=curl)
    assert exit_code(receipt) == 121


CODEX = ((b"User-Agent", b"codex_exec/0.169.0 (Debian 12)"),)
MODELS = "GET https://chatgpt.com/backend-api/codex/models"
LISTENER = ((b"Accept", b"text/event-stream"), (b"MCP-Protocol-Version", b"2025-11-25"))
CALL, LISTEN = "POST https://mcp.example/mcp", "GET https://mcp.example/mcp"


HEALTH, STATUS = "GET http://127.0.0.1:25463/health", "GET http://127.0.0.1:25463/status"
POLLED = ("a poll of loopback", False)


@pytest.mark.parametrize(
    ("headers", "tape_of", "asked", "background", "code"),
    [
        # One less, in the middle of the tape, and one more.
        (CODEX, ((OBJECT, 200), (MODELS, 200), (OTHER, 200)), (OBJECT,), [("Codex", False)], 122),
        (CODEX, ((MODELS, 200), (MODELS, 200)), (MODELS,), [("Codex", False)], 0),
        (CODEX, ((MODELS, 200),), (MODELS, "+" + MODELS), [("Codex", True)], 0),
        (LISTENER, ((CALL, 200), (LISTEN, 405)), (CALL,), [("MCP", False)], 0),
        (LISTENER, ((CALL, 200),), (CALL, "+" + LISTEN), [("MCP", True)], 0),
        (AGENT, ((OBJECT, 200), (HEALTH, 0), (OBJECT, 200)), (OBJECT,), [POLLED], 122),
        (
            AGENT,
            ((OBJECT, 200), (HEALTH, 0)),
            (OBJECT, "+" + STATUS),
            [POLLED, (POLLED[0], True)],
            0,
        ),
        # Somebody listened, or nobody looked
        (AGENT, ((OBJECT, 200), (HEALTH, 200)), (OBJECT, "+" + STATUS), [], 121),
        (AGENT, ((OBJECT, 200),), (OBJECT, "+" + STATUS), [], 121),
        # A stream that was there; a server that the tape does not know.
        (LISTENER, ((CALL, 200), (LISTEN, 200)), (CALL,), [], 122),
        (LISTENER, ((CALL, 200), (LISTEN, 200)), (CALL, "+" + LISTEN), [], 121),
        (LISTENER, ((OBJECT, 200),), (OBJECT, "+" + LISTEN), [], 121),
    ],
)
async def test_a_read_of_a_thread_may_be_anywhere(
    store: Store,
    headers: Any,
    tape_of: tuple[tuple[str, int], ...],
    asked: tuple[str, ...],
    background: list[tuple[str, bool]],
    code: int,
) -> None:
    """Codex's list of models, and the stream on which MCP listens where there is none."""
    played = [("refused" if one[0] == "+" else "served", one.lstrip("+")) for one in asked]
    receipt = await _play(store, *played, headers=headers, tape_of=tape_of)
    assert [(row["sdk"], row["extra"]) for row in receipt.background] == background
    assert exit_code(receipt) == code
