"""Idle rules are hinted at in the receipts of real runs."""

from dataclasses import replace
from pathlib import Path

from aiohttp import web

from playhead.config import (
    Answer,
    Config,
    EffectRule,
    Gate,
    IgnoreRule,
    LiveRule,
    Mode,
    RedactRule,
    parse_match,
)
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.timeline import Receipt, build


async def say_yes(_: web.Request) -> web.Response:
    return web.Response(text="yes")


async def ask(running: Running, url: str) -> Receipt:
    """Make one request in the run `r`, end it, and give its account."""
    connection = await Connection.open(str(running.address))
    answer = await connection.ask(url, credentials="r:x")
    connection.writer.close()
    assert answer.body == b"yes"
    run = next(found.info for found in running.registry.open if found.info is not None)
    await running.end(run.id)
    return build(running.store, running.store.runs.get(run.id))


async def test_rules_that_matched_nothing_are_hinted_at(tmp_path: Path) -> None:
    """While recording those of `ignore` and `redact`; in playback also effects and live rules. Used ones are not."""
    with Origin({"/used": say_yes}) as origin:
        used, idle = f"GET {origin.url}/used", f"GET {origin.url}/idle"
        config = Config(
            store=tmp_path,
            redact=(RedactRule(query="nonce"), RedactRule(query="nonse"), RedactRule(pattern="zz")),
            ignore=tuple(IgnoreRule(parse_match(text), query=("nonce",)) for text in (used, idle)),
            effects=(EffectRule(parse_match(idle), Answer(200, (), b"")),),
            live=(LiveRule(parse_match(idle), "a test"),),
        )
        async with running_engine(config) as running:
            recorded = await ask(running, f"{origin.url}/used?nonce=1")
            running.play()
            played = await ask(running, f"{origin.url}/used?nonce=2")
    assert [(row["key"], row["rule"]) for row in recorded.hints] == [
        ("ignore", idle),
        ("redact", "query nonse"),
        ("redact", "pattern 2"),
    ]
    assert "did you mean 'nonce'?" in recorded.hints[1]["text"]
    assert [(row["key"], row["rule"]) for row in played.hints] == [
        ("ignore", idle),
        ("effects", idle),
        ("live", idle),
    ]
    assert played.faithful


async def test_a_gate_that_held_nothing_is_hinted_at_while_recording(tmp_path: Path) -> None:
    """What it was to hold has left; one that holds a read has its say as any."""
    with Origin({"/used": say_yes}) as origin:
        used, idle = f"GET {origin.url}/used", f"POST {origin.url}/idel"
        rules = [EffectRule(parse_match(text), gate=Gate("duplicates")) for text in (used, idle)]
        async with running_engine(Config(store=tmp_path, effects=tuple(rules))) as running:
            recorded = await ask(running, f"{origin.url}/used")
    told = f"effects rule {idle!r} matched no request of this run"
    assert recorded.hints == [{"key": "effects", "rule": idle, "text": told}]


async def test_without_requests_there_are_no_hints(tmp_path: Path) -> None:
    """Nothing was asked that a rule could have matched."""
    rule = IgnoreRule(parse_match("GET http://idle.test"), query=("n",))
    config = replace(Config(mode=Mode.RECORD, store=tmp_path), ignore=(rule,))
    async with running_engine(config) as running:
        connection = await Connection.open(str(running.address))
        await connection.ask("http://playhead.internal/", credentials="r:x")
        connection.writer.close()
        await running.end("r")
        assert build(running.store, running.store.runs.get("r")).hints == []


async def test_places_that_no_request_had_are_hinted_at(tmp_path: Path) -> None:
    """In the receipt of the recording, and of the playback, whose answers were served."""
    with Origin({"/used": say_yes}) as origin:
        rule = IgnoreRule(
            parse_match(f"GET {origin.url}/*"), query=("nonce", "m"), header=("user-agent",)
        )
        async with running_engine(Config(store=tmp_path, ignore=(rule,))) as running:
            recorded = await ask(running, f"{origin.url}/used?nonce=1")
            running.play()
            played = await ask(running, f"{origin.url}/used?nonce=2")
    assert played.faithful
    for receipt in (recorded, played):
        told = [row["text"].partition("': ")[2] for row in receipt.hints]
        assert told == [
            "header 'user-agent' does not count in matching anyway",
            "query 'm' was in no request of this run that it matched",
        ]
