"""The class of a recorded request under other patterns than it was recorded under."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from playhead.config import Classes, parse_match
from playhead.store import RunInfo, Store
from playhead.tape.classify.by_method_and_url import classes_digest
from playhead.tape.exchange import Exchange, RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_request
from playhead.timeline import build
from playhead.timeline.reading.present_classes import with_present_classes
from playhead.timeline.receipts.effects import effects_of

TELEMETRY, EFFECT, READ = RequestClass.TELEMETRY, RequestClass.EFFECT, RequestClass.READ
PAY = "POST https://pay.test/v1/pay"
WIDE = Classes(telemetry=(parse_match("POST *://*/v1/*"),))
QUERY = b'{"query": "query { orders }"}'


@pytest.fixture
async def store(store_dir: Path) -> AsyncIterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


async def record(
    store: Store, *exchanges: Exchange, classes: Classes = WIDE, finished: bool = True
) -> RunInfo:
    digest = classes_digest(classes)
    run = await store.runs.create("tape", mode="record", at_ns=1, classes=digest)
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        if finished:
            await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=2)


def read(store: Store, tape: RunInfo, classes: Classes) -> list[tuple[str, bool]]:
    """Give the class of each request by the log, which is that of its exchange."""
    seen = with_present_classes(store, classes)
    told = [one.data for one in seen.events.all(tape) if one.kind is EventKind.INTENT]
    kept = [one.request_class.value for one in seen.exchanges.all(tape)]
    assert kept in ([], [one["request_class"] for one in told])
    return [(one["request_class"], one.get("by_body", False)) for one in told]


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (Classes(), "effect"),
        (Classes(effect=(parse_match("POST *://*/v1/pay"),)), "effect"),
        (Classes(read=(parse_match("POST *://*/v1/pay"),)), "read"),
        (Classes(inference=(parse_match("POST *://*/v1/pay"),)), "inference"),
        (WIDE, "telemetry"),
    ],
)
async def test_the_patterns_of_now_decide(
    store: Store, classes: Classes, kind: str, finished: bool
) -> None:
    """Of a request without an outcome, too."""
    tape = await record(store, make_exchange(1, PAY, kind=TELEMETRY), finished=finished)
    assert read(store, tape, classes) == [(kind, False)]


async def test_a_body_decides_as_when_it_is_recorded(store: Store) -> None:
    """It is a read by its body alone, which no live rule of reads lets out."""
    asked = make_request("POST https://api.test/graphql", QUERY)
    asked = replace(asked, headers=(*asked.headers, (b"Content-Type", b"application/json")))
    tape = await record(store, make_exchange(1, kind=TELEMETRY, request=asked))
    assert read(store, tape, Classes()) == [("read", True)]
    named = Classes(read=(parse_match("POST *://*/graphql"),))
    assert read(store, tape, named) == [("read", False)]


async def test_a_tape_of_the_same_patterns_is_left_as_it_is(store: Store) -> None:
    """What is written down counts; nothing is computed."""
    tape = await record(store, make_exchange(1, PAY, kind=READ), classes=WIDE)
    assert read(store, tape, WIDE) == [("read", False)]


async def test_other_patterns_over_others_count_alone(store: Store) -> None:
    """A view of a view reads the tape by its own patterns."""
    tape = await record(store, make_exchange(1, PAY, kind=EFFECT), classes=Classes())
    other = with_present_classes(store, WIDE)
    assert read(other, tape, Classes()) == [("effect", False)]
    assert read(other, tape, WIDE) == [("telemetry", False)]


async def test_an_effect_that_was_telemetry_is_missed_and_listed(store: Store) -> None:
    """A replay that leaves it out is not faithful, whenever its receipt is computed."""
    tape = await record(store, make_exchange(1, PAY, kind=TELEMETRY))
    for classes, unused in ((Classes(), 1), (WIDE, 0)):
        run = await store.runs.create(
            tape.id, mode="playback", at_ns=3, parent=tape, classes=classes_digest(classes)
        )
        told = {"telemetry": [match.text for match in classes.telemetry]}
        if classes is WIDE:
            store.events.append(run.number, Event(EventKind.NOTED, 3, {"classes": told}))
        ended = await store.runs.seal(run, reason="the command ended with 0", at_ns=4)
        for seen in (store, with_present_classes(store, WIDE)):
            assert build(seen, ended).counts["unused"] == unused
    listed, _ = effects_of(with_present_classes(store, Classes()), tape)
    assert [effect.url for effect in listed] == ["https://pay.test/v1/pay"]
    listed, _ = effects_of(store, tape)
    assert list(listed) == []
