"""Reads that an SDK sends from a thread at the end of a replay, and that came too late while recording."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import RunInfo, Store
from playhead.tape.diff.divergence_types import Divergence, DivergenceKind
from playhead.tape.exchange import Exchange, RequestClass, Seq, VerdictKind
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_request
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


async def _play(store: Store, *asked: tuple[str, str], headers: Any = AGENT) -> Receipt:
    """Record one read of an object, and play what is asked: `served` or `refused`, and a request."""
    run = await store.create_run("tape", mode="record", at_ns=1)
    recorded = _read(1, OBJECT)
    store.append(run.number, make_intent(recorded))
    await store.save(run.number, partial(make_record, recorded))
    tape = await store.seal(run, reason="done", at_ns=2)
    played: RunInfo = await store.create_run("tape", mode="playback", at_ns=3, parent=tape)
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
        store.append(played.number, Event(EventKind.VERDICT, 3, data))
        if verdict == "refused":
            await store.save(played.number, partial(make_record, exchange, final=False))
            kind = DivergenceKind.UNEXPECTED
            row = Divergence(kind, Seq(seq), request.method, request.url, None).to_json()
            store.append(
                played.number, Event(EventKind.DIVERGED, 3, {"seq": seq, "divergence": row})
            )
    return build(store, await store.seal(played, reason="done", at_ns=4))


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
