"""Values that were replaced in header fields whose names say nothing of them: they count as those of a body do."""

import io
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import Config, IgnoreRule, Mode, Playback, RedactRule, parse_match
from playhead.store import Store
from playhead.tape.exchange import RunId
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.tests.support.story import Call, recorded
from playhead.timeline import Receipt, build
from playhead.timeline.formats.tape_file import export_tape, import_tape

FIRST, SECOND, THIRD = (
    "ghp_" + value
    for value in (
        "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX",
        "mR4cx8Wn3qY7zBd5KsgV2tD9vP6jHu1fL0aQ",
        "pL9wq2Xk7vT4mZc6RbnY1sF8dJ3hGu5tE0oA",
    )
)
"""Keys of a known format."""
_KEYS = b"one key", b"another key"
"""Of two stores."""
Fields = list[tuple[str, str]]


async def _ask(running: Running, url: str, asked: list[Fields], body: bytes = b"{}") -> None:
    async with aiohttp.ClientSession() as session:
        for fields in asked:
            async with session.post(
                url, data=io.BytesIO(body), headers=fields, proxy=running.url_for("r")
            ) as answer:
                await answer.read()


async def _ok(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _replay(
    tmp_path: Path,
    recorded: list[Fields],
    played: list[Fields],
    *,
    other: bool,
    bodies: tuple[bytes, bytes] = (b"{}", b"{}"),
    **more: Any,
) -> Receipt:
    """Record requests and play other ones, in another store where that is said."""
    store = tmp_path / "store"
    with Origin({"/{tail:.*}": _ok}) as origin:
        url = f"{origin.url}/v1/notes"
        config = Config(mode=Mode.RECORD, store=store, **more)
        async with running_engine(config, _KEYS[0]) as running:
            await _ask(running, url, recorded, bodies[0])
            await running.end("r")
    if other:
        store = _carry(store, tmp_path / "other")
    config = Config(mode=Mode.PLAYBACK, store=store, playback=Playback(effects="refuse"), **more)
    async with running_engine(config, _KEYS[other]) as running:
        await _ask(running, url, played, bodies[1])
        await running.end("r@1")
        return build(running.store, running.store.runs.get("r@1"))


def _carry(store: Path, to: Path) -> Path:
    pieces = list[bytes]()
    with Store.open(store, readonly=True) as one:
        export_tape(one, one.runs.get(RunId("r")), pieces.append, lambda *_: None)
    with Store.open(to) as other:
        import_tape(other, lambda: pieces, 1 << 30, lambda *_: None)
    return to


def note(*keys: str) -> list[Fields]:
    """Requests, each with a key in a field of its own."""
    return [[("x-note", f"made with {key} today")] for key in keys]


def places(receipt: Receipt) -> list[Any]:
    """Where it diverged."""
    return [[one["place"] for one in row["differences"]] for row in receipt.divergences]


@pytest.mark.parametrize("other", [False, True])
async def test_the_same_values_are_served(tmp_path: Path, other: bool) -> None:
    """Whoever sends what was sent is green, in the store of the tape and in another one."""
    receipt = await _replay(tmp_path, note(FIRST, SECOND), note(FIRST, SECOND), other=other)
    assert receipt.faithful, receipt.to_json()
    assert receipt.kind_alone == (2 if other else 0)


async def test_another_value_is_refused(tmp_path: Path) -> None:
    """It names redaction."""
    receipt = await _replay(tmp_path, note(FIRST), note(SECOND), other=False)
    assert places(receipt) == [["header x-note"]]
    assert "has another secret" in receipt.divergences[0]["text"]


@pytest.mark.parametrize("other", [False, True])
async def test_what_is_beside_a_value_counts(tmp_path: Path, other: bool) -> None:
    """Only the value itself was replaced."""
    changed: list[Fields] = [[("x-note", f"made with {FIRST} tomorrow")]]
    receipt = await _replay(tmp_path, note(FIRST), changed, other=other)
    assert places(receipt) == [["header x-note"]]


async def test_values_are_renamed_consistently(tmp_path: Path) -> None:
    """On a tape of another store, whose placeholders say nothing of values."""
    tape = note(FIRST, SECOND, FIRST)
    good = await _replay(tmp_path / "good", tape, note(SECOND, THIRD, SECOND), other=True)
    assert good.faithful, good.to_json()
    bad = await _replay(tmp_path / "bad", tape, note(SECOND, THIRD, THIRD), other=True)
    assert {place for found in places(bad) for place in found} == {"header x-note"}


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("x-sentry-dsn", "https://KEY@o12.ingest.test/45", True),
        ("x-remote", "see https://git:KEY@git.test/x", True),
        ("x-callback", "https://cb.test/x?access_token=KEY", False),
        ("referer", "https://cb.test/x#access_token=KEY", False),
        ("sec-websocket-protocol", "realtime, openai-insecure-api-key.KEY", False),
    ],
)
async def test_credentials_in_fields_of_other_kinds(
    name: str, text: str, counts: bool, tmp_path: Path
) -> None:
    """The same one is served in any store, another one where it is in a place of credentials."""
    tape: list[Fields] = [[(name, text.replace("KEY", FIRST))]]
    for other in (False, True):
        told = await _replay(tmp_path / f"{other}", tape, tape, other=other)
        assert told.faithful, told.to_json()
        assert told.matched == ({"canonical": 1} if other else {"exact": 1})
    rotated: list[Fields] = [[(name, text.replace("KEY", SECOND))]]
    told = await _replay(tmp_path / "rotated", tape, rotated, other=False)
    assert (told.faithful, told.matched) == ((False, {}) if counts else (True, {"canonical": 1}))


async def test_bodies_that_are_too_large_to_be_held(tmp_path: Path) -> None:
    """What was replaced in one counts as in any; a place of credentials may have another value."""

    def body(password: str, key: str) -> bytes:
        text = b'{"doc": "%b", "password": "%b", "api_key": "%b"}'
        return text % (b" " * HELD_BYTES, password.encode(), key.encode())

    tape, plain = body(FIRST, SECOND), list[Fields]([[]])
    for number, (other, sent, served) in enumerate(
        (
            (False, tape, {"exact": 1}),
            (False, body(FIRST, THIRD), {"canonical": 1}),
            (False, body(THIRD, SECOND), {}),
            (True, tape, {"canonical": 1}),
        )
    ):
        to = tmp_path / str(number)
        told = await _replay(to, plain, plain, other=other, bodies=(tape, sent))
        assert told.matched == served, told.to_json()


async def test_fields_of_one_name(tmp_path: Path) -> None:
    """Each value of them counts by itself; others may come before."""
    tape: list[Fields] = [[("x-note", FIRST), ("accept", "a/b"), ("x-note", f"or {SECOND}")]]
    good = await _replay(tmp_path / "good", tape, tape, other=True)
    assert good.faithful, good.to_json()
    bad: list[Fields] = [[("x-note", FIRST), ("accept", "a/b"), ("x-note", f"or {FIRST}")]]
    for other in (False, True):
        told = await _replay(tmp_path / f"bad{other}", tape, bad, other=other)
        assert {place for found in places(told) for place in found} == {"header x-note"}


@pytest.mark.parametrize("other", [False, True])
async def test_a_field_that_a_rule_ignores_does_not_count(tmp_path: Path, other: bool) -> None:
    """It is what the rule says, and of an effect the receipt says it, too."""
    rule = IgnoreRule(parse_match("POST http://127.0.0.1:*/*"), header=("X-Note",))
    receipt = await _replay(tmp_path, note(FIRST), note(SECOND), other=other, ignore=(rule,))
    assert receipt.faithful_but_for == ["ignored content"], receipt.to_json()


async def test_a_key_that_an_authorization_has_too(tmp_path: Path) -> None:
    """It varies in its own place, and then in the other one as well."""

    def ask(key: str) -> list[Fields]:
        return [[("authorization", f"Bearer {key}"), ("x-note", f"with {key}")]]

    for other in (False, True):
        told = await _replay(
            tmp_path / f"{other}", ask("k" + FIRST), ask("k" + SECOND), other=other
        )
        assert told.faithful, told.to_json()


OWN: dict[str, Any] = {"redact": (RedactRule(header="x-customer"), RedactRule(query="customer"))}


def _of_customer(header: str, query: str, body: str = "acme") -> Call:
    asked = {"customer_id": body, "amount": 1}
    return Call(f"POST /r?customer={query}", asked, headers={"X-Customer": header})


async def test_what_a_rule_of_ones_own_replaces_in_a_field_or_query_counts(store_dir: Path) -> None:
    """A tenant is no credential: another one is refused at its place, and opens no other place."""
    async with recorded(store_dir, [_of_customer("acme", "acme")], OWN, **OWN) as story:
        for sent, place in (
            (_of_customer("acme", "acme"), None),
            (_of_customer("globex", "acme"), "header x-customer"),
            (_of_customer("acme", "globex"), "query customer"),
        ):
            (said,) = await story.play([sent])
            receipt = await story.end()
            assert said.status == (200 if place is None else 424)
            assert receipt.faithful is (place is None)
            if place is not None:
                assert receipt.root is not None
                assert place in [one["place"] for one in receipt.root["differences"]]


@pytest.mark.parametrize("last", ["acme", "globex"])
async def test_what_a_rule_of_ones_own_replaces_is_renamed_as_one_on_another_store(
    tmp_path: Path, last: str
) -> None:
    """There one customer stands for one."""
    told = [[("X-Customer", one)] for one in ("acme", "initech", "acme")]
    played = [*told[:2], [("X-Customer", last)]]
    receipt = await _replay(tmp_path, told, played, other=True, redact=OWN["redact"])
    assert receipt.faithful is (last == "acme"), receipt.divergences
    assert receipt.kind_alone


async def test_a_masked_field_of_a_rule_of_ones_own_does_not_count(store_dir: Path) -> None:
    """Whoever ignores a place has said so."""
    ignore = (IgnoreRule(parse_match("POST *://*"), header=("x-customer",), query=("customer",)),)
    async with recorded(
        store_dir, [_of_customer("acme", "acme")], OWN, **OWN, ignore=ignore
    ) as story:
        (said,) = await story.play([_of_customer("globex", "globex")])
        assert said.status == 200
        await story.end()
