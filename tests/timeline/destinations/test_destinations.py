"""Where agents send things."""

from dataclasses import replace
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tape.exchange import RedactedText, RequestClass
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, text, user
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_intent
from playhead.tests.support.replays import write_recording, write_replay
from playhead.timeline.destinations.destinations import Destination, Destinations, agent_name
from playhead.timeline.destinations.render import destination_json, render_destinations, show_bytes
from playhead.timeline.show.fit import columns

DAY = 86_400_000_000_000


def talk() -> Tape:
    """A conversation that repeats an address, an effect with another one, a read."""
    tape = Tape("talk")
    asked = [user("Write to ana@shop.test."), user("Done?"), user("And ben@shop.test?")]
    for number in range(3):
        tape.model(anthropic(asked[: number + 1]), anthropic_stream(text("Yes.")))
    tape.post("https://mail.test/send", {"to": "ana@shop.test", "card": "4111111111111111"})
    tape.get("https://mail.test/inbox?of=ana@shop.test")
    return tape


async def read(folder: Path, since_ns: int = 0) -> dict[str, Destination]:
    """Write two recordings and a replay; give where they sent things."""
    found = Destinations(since_ns)
    with Store.open(folder / "store") as store:
        tape = await write_recording(store, "one", talk().exchanges)
        later = [replace(one, started_ns=one.started_ns + DAY) for one in talk().exchanges[3:]]
        await write_recording(store, "two", later)
        await write_replay(store, tape, talk().exchanges)
        for run in store.runs.all():
            found.add(store, run)
    return {one.host: one for one in found.all()}


async def test_hosts_are_counted_with_their_bytes_and_classes(tmp_path: Path) -> None:
    """What a replay was served was not sent, and what a conversation repeats was said once."""
    hosts = await read(tmp_path)
    model, mail = hosts["api.anthropic.com"], hosts["mail.test"]
    assert (model.requests, mail.requests) == (3, 4)
    assert dict(model.personal) == {"email": 2}
    assert dict(mail.personal) == {"email": 4, "card": 2}
    assert {name: dict(classes) for name, classes in mail.agents.items()} == {
        "unknown": {"effect": 2, "read": 2}
    }
    assert mail.bytes_out > 0
    assert (mail.first_run, mail.refused) == ("one", 0)


async def test_requests_before_the_time_do_not_count(tmp_path: Path) -> None:
    """A host is first seen when it was first seen since then."""
    hosts = await read(tmp_path, talk().exchanges[0].started_ns + DAY // 2)
    assert list(hosts) == ["mail.test"]
    assert (hosts["mail.test"].requests, hosts["mail.test"].first_run) == (2, "two")


async def test_what_was_refused_or_denied_is_told_apart(tmp_path: Path) -> None:
    """It was not sent, and somebody wanted to send it."""
    found = Destinations()
    exchange = talk().exchanges[3]
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create(
            "run", mode="record", at_ns=1, agent=RedactedText("/usr/bin/python3 -u /x/agent.py 7")
        )
        asked = make_intent(exchange)
        data = {**asked.data, "verdict": "refused", "reason": "denied by ben"}
        store.events.append(run.number, Event(EventKind.VERDICT, 5, data))
        away = {"target": "evil.test:443", "by": "kernel", "reason": "sandbox"}
        store.events.append(run.number, Event(EventKind.EGRESS, 6, away))
        run = await store.runs.seal(run, reason="enough", at_ns=9)
        found.add(store, run)
    rows = [destination_json(one) for one in found.all()]
    assert [(one["host"], one["requests"], one["refused"]) for one in rows] == [
        ("evil.test", 0, 1),
        ("mail.test", 0, 1),
    ]
    lines = list(render_destinations(found.all()))
    assert all(columns(line) <= 80 for line in lines)
    assert "  1 not sent: refused or denied" in lines


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("", "unknown"),
        ("/usr/local/bin/claude -p hello", "claude"),
        ("python3.13 -u agents/refund.py --order 7", "refund"),
        ("node", "node"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_an_agent_is_named_by_its_program(command: str, name: str) -> None:
    """And by its script, where the program runs scripts."""
    assert agent_name(command) == name


def test_sizes_are_short() -> None:
    """In steps of a thousand."""
    assert [show_bytes(size) for size in (0, 999, 1500, 2_500_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
    ]


async def test_what_a_branch_sent_to_a_sandbox_counts_there(tmp_path: Path) -> None:
    """And what was hypothetical was sent to nobody."""
    found = Destinations()
    with Store.open(tmp_path / "store") as store:
        tape = await write_recording(store, "one", [])
        run = await store.runs.create("one", mode="playback", at_ns=3, parent=tape)
        refund, inbox = talk().exchanges[3:5]
        intent = make_intent(refund)
        place = {"sandbox_place": "http://copy.test:9000"}
        store.events.append(run.number, Event(intent.kind, intent.at_ns, {**intent.data, **place}))
        asked = make_intent(inbox)
        told = {**asked.data, "verdict": "hypothetical", "reason": "given"}
        store.events.append(run.number, Event(EventKind.VERDICT, asked.at_ns, told))
        found.add(store, await store.runs.seal(run, reason="enough", at_ns=9))
    assert {one.host: one.requests for one in found.all()} == {"copy.test": 1}


async def test_personal_data_is_counted_however_a_client_writes_it(tmp_path: Path) -> None:
    """In a path, a query, a form and JSON; what a conversation repeats is still counted once."""
    tape = Tape("encoded")
    tape.get("https://query.test/p?e=bob%40shop.test")
    tape.get("https://path.test/u/bob%40shop.test/x")
    kind = {"content-type": "application/x-www-form-urlencoded"}
    form = make_request("https://form.test/f", b"p=%2B4915112345678&q=bob%40shop.test", kind)
    tape.add(form, make_response({"ok": True}), RequestClass.EFFECT)
    said = "bob\\u0040shop.test " * 40
    for more in ("", "ana\\u0040shop.test", "ana\\u0040shop.test, ben\\u0040shop.test"):
        body = f'{{"said": "{said}{more}"}}'.encode()
        asked = make_request("https://json.test/f", body, {"content-type": "application/json"})
        tape.add(asked, make_response({"ok": True}), RequestClass.EFFECT)
    found = Destinations(0)
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "one", tape.exchanges)
        for run in store.runs.all():
            found.add(store, run)
    assert {one.host: dict(one.personal) for one in found.all()} == {
        "query.test": {"email": 1},
        "path.test": {"email": 1},
        "form.test": {"phone": 1, "email": 1},
        "json.test": {"email": 3},
    }


def test_an_empty_listing_says_so() -> None:
    """And has no head."""
    assert list(render_destinations([])) == ["nothing was sent to any host"]
