"""A recording that is rewritten under a rule of later, and played: with an agent that did not change, it is faithful to what it is now."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.config import Config, Encrypt, Mode, RedactRule
from playhead.proxy.operations.redact_stored_runs import rewrite
from playhead.proxy.operations.verify import verify_runs
from playhead.store import Store, find_key, make_key_file
from playhead.tests.support.engine import running_engine
from playhead.tests.support.story import Call, Said, Story, recorded
from playhead.timeline import Receipt, build, render_receipt

WORD = "-".join(("tango", "4417", "velvet", "9031"))
TOKEN = "_".join(("live", "Qw7Zk3vTn9LxB2mWdR8sYp4HcJ6gFa1e"))
BEARER = " ".join(("Bearer", "Zk3vTn9LxB2mWdR8sYp4HcJ6"))
RULES = (
    RedactRule(header="x-foo"),
    RedactRule(query="ticket"),
    RedactRule(json="handle"),
    RedactRule(pattern="order-[0-9a-f]{16}"),
)
ORDER = "order-0f1e2d3c4b5a6978"
SIGNED = {"Authorization": BEARER, "Cookie": "session=Ab3Cd5Ef7Gh9Jk1Lm"}


def calls(handle: str = "", order: str = "") -> list[Call]:
    """What the agent asks; `handle` and `order` are what the third answer gave it."""
    return [
        Call("GET /v1/me", headers=SIGNED, answer={"name": "agent"}),
        Call("POST /v1/items", {"n": 1}, headers={**SIGNED, "X-Foo": WORD}),
        Call("POST /v1/login", {"user": "ann"}, {"handle": TOKEN, "for": ORDER}),
        Call("POST /v1/items", {"n": 2, "handle": handle}, headers=SIGNED),
        Call(f"GET /v1/items?ticket={WORD}&n=3", headers=SIGNED),
        Call("POST /v1/orders", {"text": f"cancel {order}", "by": WORD}, {"done": ORDER}),
        Call("POST /v1/plain", {"nothing": "to hide"}),
    ]


async def play(config: Config, port: int) -> tuple[list[Said], Receipt]:
    """Run the agent again, against the tape."""
    async with running_engine(replace(config, mode=Mode.PLAYBACK)) as running:
        story = Story(running, port)
        said = await story.play(calls()[:3])
        given = json.loads(said[2].body)
        said += await story.play(calls(given["handle"], given["for"])[3:])
        name = next(run.id for run in reversed(running.store.runs.all()) if run.parent is not None)
        await running.end(name)
        story.clients.shutdown()
        return said, build(running.store, running.store.runs.get(name))


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of these tests makes placeholders with a key of its own."""
    monkeypatch.setattr(
        "playhead.proxy.operations.redact_stored_runs.open_redaction_key", lambda _: b"a test's key"
    )


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_rewritten_recording_is_played(tmp_path: Path, encrypted: bool) -> None:
    """Placeholders stand where the rules say; what was redacted before is as it was; nothing is refused."""
    config = Config(store=tmp_path / "s")
    if encrypted:
        make_key_file(tmp_path / "key")
        config = replace(config, encrypt=Encrypt(tmp_path / "key"))
    told = {} if not encrypted else {"encrypt": config.encrypt}
    async with recorded(config.store, calls(TOKEN, ORDER), recording=told) as story:
        port = story.port
    key = find_key(config.encrypt.key_file, {})
    with Store.open(config.store, readonly=True, key=key) as store:
        before = list(store.exchanges.all(store.runs.get("tape")))
    now = replace(config, redact=RULES)
    assert not (await asyncio.to_thread(rewrite, config, ["tape"], dry_run=False)).changes[0].rules
    made = await asyncio.to_thread(rewrite, now, ["tape"], dry_run=False)
    assert list(made.changes[0].rules) == [
        "redact[0] header x-foo",
        "redact[2] json handle",
        "redact[3] pattern",
        "redact[1] query ticket",
    ]
    assert [one.seq for one in made.changes[0].exchanges] == [2, 3, 4, 5, 6]
    with Store.open(config.store, readonly=True, key=key) as store:
        after = list(store.exchanges.all(store.runs.get("tape")))
    assert (after[0], after[6]) == (before[0], before[6])
    for one, other in zip(before, after, strict=True):
        assert dict(one.request.headers).get(b"Authorization") == dict(other.request.headers).get(
            b"Authorization"
        )
    said, receipt = await play(now, port)
    assert [one.status for one in said] == [200] * 7, said
    assert receipt.faithful is False
    shown = receipt.to_json()
    assert (shown["exit_code"], shown["divergences"], shown["unused"]) == (0, [], [])
    head = render_receipt(receipt).splitlines()[1]
    assert head.startswith("FAITHFUL TO A REWRITTEN TAPE: replay of tape (rewritten by redact[0]")
    assert shown["tape"]["standing"] == "rewritten"
    assert "redact[1] query ticket" in shown["tape"]["rewritten"]
    hidden = [WORD.encode(), TOKEN.encode(), ORDER.encode()]
    assert not [one for one in said for word in hidden if word in one.body]
    # What played it is rewritten with it: there is nothing left to change.
    again = await asyncio.to_thread(rewrite, now, [], dry_run=False)
    assert [one.places for one in again.changes] == [[], []]
    checked = await asyncio.to_thread(verify_runs, now, None)
    assert [one.problems for one in checked] == [(), ()]
    assert [len(one.rewritten) for one in checked] == [1, 0]


async def test_a_playback_of_before_is_rewritten_with_its_tape(tmp_path: Path) -> None:
    """Its receipt is what it was."""
    config = Config(store=tmp_path / "s")
    async with recorded(config.store, calls(TOKEN, ORDER)) as story:
        port = story.port
    _, receipt = await play(config, port)
    assert receipt.faithful
    now = replace(config, redact=RULES)
    made = await asyncio.to_thread(rewrite, now, ["tape"], dry_run=False)
    assert [one.run.id for one in made.changes] == ["tape", "tape@1"]
    with Store.open(config.store, readonly=True) as store:
        again = build(store, store.runs.get("tape@1"))
    assert again.faithful
    assert not again.rewritten  # it had not been, when it was played
    assert again.counts == receipt.counts
