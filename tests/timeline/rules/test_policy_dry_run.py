"""Runs judged again under other rules: what would change, and nothing else."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, loads
from playhead.store import Store
from playhead.tape.exchange import IMPORT_RULE, RedactedText, RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.engine import running_engine
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.recordings import ask, record_run
from playhead.timeline.rules.policy_dry_run import PolicyDryRun, dry_run_policy
from playhead.timeline.rules.render_dry_run import render_dry_run

EFFECT, READ = RequestClass.EFFECT, RequestClass.READ
RUNS = 1000 if os.environ.get("PLAYHEAD_FULL") else 20


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "store") as opened:
        yield opened


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


@pytest.fixture
async def tape(tmp_path: Path) -> AsyncIterator[tuple[Store, str]]:
    """A store with a run, `tape`, and where it was asked: two refunds that are the same, and a search by POST."""
    import httpx

    config = Config(store=tmp_path / "recorded")
    with RawOrigin(_say_ok) as origin:
        async with running_engine(config) as running:

            def post() -> None:
                proxy = running.url_for("tape")
                with httpx.Client(proxy=proxy, timeout=20, trust_env=False) as client:
                    for path, body in (("refunds", {"a": 1}), ("refunds", {"a": 1}), ("find", {})):
                        client.post(f"{origin.url}/{path}", json=body).raise_for_status()

            await asyncio.to_thread(post)
            await running.end("tape")
            yield running.store, origin.url


def changes(made: PolicyDryRun) -> dict[int, tuple[str, str, str | None]]:
    """By seq: class and verdict under the rules, and what the replay would do."""
    return {
        row.seq: (
            row.after.request_class,
            row.after.verdict,
            row.replay.verdict if row.replay is not None else None,
        )
        for row in made.changed
    }


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("", {}),
        ("classes: {read: ['POST */find']}", {3: ("read", "recorded", None)}),
        (
            "effects: [{match: 'POST */refunds', gate: true}]",
            {1: ("effect", "held", None), 2: ("effect", "held", None)},
        ),
        ("effects: [{match: 'POST */refunds', gate: duplicates}]", {2: ("effect", "held", None)}),
        (
            "live: [{match: 'POST */find', reason: fresh}]",
            {3: ("effect", "recorded", "live")},
        ),
        (
            "live: [{match: 'POST */refunds', reason: r}]\neffects: [{match: 'POST */refunds', gate: true}]",
            {1: ("effect", "held", "held"), 2: ("effect", "held", "held")},
        ),
        ("effects: [{match: 'POST */refunds', answer: {status: 200}}]", {}),
    ],
)
async def test_a_recording_under_other_rules(
    tape: tuple[Store, str], rules: str, expected: dict[int, tuple[str, str, str | None]]
) -> None:
    """What recording and its replay would do otherwise."""
    store, url = tape
    made = dry_run_policy(store, store.runs.get("tape"), loads(rules.replace("*/", f"{url}/")))
    assert changes(made) == expected
    assert made.requests == 3
    told = render_dry_run(made)
    assert ("nothing changes" in told) is (not expected)
    assert {row["seq"] for row in made.to_json()["changed"]} == set(expected)


@pytest.mark.parametrize(
    ("verdict", "more", "rules", "expected"),
    [
        ("served", {"tape_seq": 1, "match": "exact"}, "", "served"),
        (
            "served",
            {"tape_seq": 1, "match": "exact"},
            "live: [{match: 'POST */refunds', reason: r}]",
            "live",
        ),
        ("served", {"tape_seq": 1, "match": "repeated"}, "", "refused"),
        ("refused", {"rule": "not on tape"}, "", "refused"),
        (
            "refused",
            {"rule": "not on tape"},
            "effects: [{match: 'POST */refunds', answer: {status: 200}}]",
            "stubbed",
        ),
        (
            "stubbed",
            {"rule": "effects POST http://api.test/refunds"},
            "playback: {effects: refuse}",
            "refused",
        ),
        (
            "refused",
            {"rule": "stopped"},
            "effects: [{match: 'POST */refunds', answer: {status: 200}}]",
            "refused",
        ),
    ],
)
async def test_a_playback_under_other_rules(
    store: Store, verdict: str, more: dict[str, Any], rules: str, expected: str
) -> None:
    """What its tape held is as the log says; the rules decide what comes of it."""
    tape = await asyncio.to_thread(record_run, store, "tape", [ask({})], kind=EFFECT)
    run = await store.runs.create(
        "tape", mode="playback", at_ns=1, parent=tape, agent=RedactedText("")
    )
    data = {
        "seq": 1,
        "method": "POST",
        "url": "http://api.test/refunds",
        "request_class": "effect",
        "verdict": verdict,
        "reason": "",
        "fingerprint": b"f" * 16,
        "rule": "tape",
        **more,
    }
    store.events.append(run.number, Event(EventKind.VERDICT, 1, data))
    run = await store.runs.seal(run, reason="done", at_ns=2)
    made = dry_run_policy(store, run, loads(rules.replace("*/", "http://api.test/")))
    assert made.after == {expected: 1}


def test_what_only_a_body_said_is_read_again(store: Store) -> None:
    """A body that still says that it reads, and a pattern that is gone."""
    listing = ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    run = record_run(store, "tape", [listing], kind=READ)
    assert dry_run_policy(store, run, Config()).changed == []
    # What leaves is decided by method and URL alone, as it was then.
    live = loads("playback: {reads: {live: {hosts: [api.test], reason: fresh}}}")
    assert dry_run_policy(store, run, live).changed == []
    other = record_run(store, "other", [ask({"a": 1})], kind=READ)
    assert changes(dry_run_policy(store, other, Config())) == {1: ("effect", "recorded", None)}


def test_a_thousand_runs_are_judged_in_a_sweep(store: Store) -> None:
    """Each by itself: nothing of one run is in another."""
    for number in range(RUNS):
        record_run(store, f"run-{number}", [ask({"n": number})], kind=EFFECT)
    rules = loads("effects: [{match: 'POST https://api.test/*', gate: true}]")
    for run in store.runs.all():
        assert dry_run_policy(store, run, rules).after == {"held": 1}


@pytest.mark.parametrize(
    ("rules", "expected", "told"),
    [
        ("", {}, "nothing changes"),
        (
            "effects: [{match: 'POST http://api.test/*', gate: true}]",
            {1: ("effect", "held", None)},
            "was effect, recorded by import; would be effect, held by effects",
        ),
        # Only its replay is decided otherwise.
        (
            "live: [{match: 'POST http://api.test/*', reason: r}]",
            {1: ("effect", "recorded", "live")},
            "its replay: effect, live by live",
        ),
    ],
)
async def test_what_was_imported_was_decided_by_no_rule(
    store: Store, rules: str, expected: dict[int, tuple[str, str, str | None]], told: str
) -> None:
    """So none has changed where it would be recorded by its mode."""
    run = await store.runs.create("imported", mode="record", at_ns=1)
    data = {"seq": 1, "method": "POST", "url": "http://api.test/refunds"}
    data |= {"request_class": "effect", "fingerprint": b"f" * 16, "rule": IMPORT_RULE}
    store.events.append(run.number, Event(EventKind.INTENT, 1, data))
    run = await store.runs.seal(run, reason="imported", at_ns=2)
    made = dry_run_policy(store, run, loads(rules))
    assert changes(made) == expected
    shown = render_dry_run(made)
    assert told in shown
    assert ("recorded by import" in shown) is ("held" in told)
