"""`secrets: encrypted`: the store keeps what redaction replaced in answers, encrypted, and gives it back to a replay on this machine."""

import gzip
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import Config, Encrypt, Secrets
from playhead.proxy.cli import cli
from playhead.proxy.operations.open_store import open_store
from playhead.store import Store, make_key_file, read_key
from playhead.store.lmdb_keys import ORIGINALS
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.origins import Handler, Origin
from playhead.tests.support.secrets import find_written
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build
from playhead.timeline.receipts.render_text import render_receipt

TOKEN = "at-4f3e2d1c0b9a8f7e6d5c"
SESSION = "s3ss10nA1b2C3d4E5f6G7h8"
NESTED = "ghp_kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
DEEP = "ghp_mR4cx8Wn3qY7zBd5KsgV2tD9vP6jHu1fL0aQ"
SPLIT = "ghp_pL9wq2Xk7vT4mZc6RbnY1sF8dJ3hGu5tE0oA"
SECRETS = (TOKEN, SESSION, NESTED, DEEP, SPLIT)
PATHS = ("/login", "/zipped", "/stream", "/large", "/me")
Said = tuple[int, str | None, tuple[tuple[bytes, bytes], ...], bytes]


async def _login(request: web.Request) -> web.Response:
    body = json.dumps({"access_token": TOKEN, "expires_in": 3600})
    fields = {"Set-Cookie": f"sid={SESSION}; Path=/", "X-Note": f"use {NESTED} now"}
    return web.Response(
        text=body, headers=fields, content_type="application/json", reason=f"OK {NESTED}"
    )


async def _zipped(request: web.Request) -> web.Response:
    body = gzip.compress(
        json.dumps({"note": f"key {NESTED}", "text": "said " * 40}).encode(), mtime=1
    )
    fields = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=body, headers=fields)


async def _stream(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    for part in (SPLIT[:11], SPLIT[11:25], SPLIT[25:]):
        await answer.write(b'data: {"delta": "%b"}\n\n' % part.encode())
    return answer


async def _large(request: web.Request) -> web.Response:
    half = b"nothing to see here, move along; " * (HELD_BYTES // 60)
    return web.Response(body=half + f" key {DEEP} and {NESTED} ".encode() + half)


async def _me(request: web.Request) -> web.Response:
    """Say back what was sent."""
    return web.Response(body=await request.read(), content_type="application/json")


async def _ask(running: Running, url: str) -> list[Said]:
    """Log in, and use what was given: as a bearer, as a cookie, in a text."""
    said: list[Said] = []
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for path in PATHS:
            fields, data = {}, None
            if path == "/me":
                token = json.loads(said[0][3])["access_token"]
                sid = dict(said[0][2])[b"Set-Cookie"].split(b";")[0].decode()
                fields = {"Authorization": f"Bearer {token}", "Cookie": sid}
                data = json.dumps({"prompt": f"remember {token} for later"})
            async with session.post(
                url + path, proxy=running.url_for("r"), headers=fields, data=data
            ) as answer:
                body = await answer.read()
                said.append((answer.status, answer.reason, answer.raw_headers, body))
    return said


def _config(tmp_path: Path, **changes: object) -> Config:
    if not (tmp_path / "a.key").exists():
        make_key_file(tmp_path / "a.key")
    settings = {"encrypt": Encrypt(tmp_path / "a.key"), "secrets": Secrets.ENCRYPTED, **changes}
    return Config(store=tmp_path / "store", **settings)  # type: ignore[arg-type]


ROUTES: dict[str, Handler] = {
    "/login": _login,
    "/zipped": _zipped,
    "/stream": _stream,
    "/large": _large,
    "/me": _me,
}


async def _record(config: Config) -> tuple[str, list[Said]]:
    with Origin(ROUTES) as origin:
        async with running_engine(config) as running:
            said = await _ask(running, origin.url)
            await running.end("r")
        return origin.url, said


async def _play(config: Config, url: str, name: str = "r@1") -> tuple[list[Said], Receipt]:
    async with running_engine(config) as running:
        running.play()
        again = await _ask(running, url)
        await running.end(name)
        return again, build(running.store, running.store.runs.get(name))


def _lying_there(folder: Path, secrets: Iterable[str] = SECRETS) -> list[tuple[str, str]]:
    """Find secrets in the files of a folder, however they are written: which, and where."""
    told = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [(secret, where) for secret, where, _ in find_written(secrets, told)]


def _command(tmp_path: Path, *words: str, more: str = "") -> Result:
    file = tmp_path / "playhead.yaml"
    if not file.exists():
        file.write_text(f"store: store\nencrypt: {{key_file: a.key}}\nsecrets: encrypted\n{more}")
    return CliRunner().invoke(
        cli, [*words, "-c", str(file)], standalone_mode=False, catch_exceptions=False
    )


def _count(tmp_path: Path, key: str = "a.key") -> int:
    """Count the originals that a store has."""
    with Store.open(tmp_path / "store", readonly=True, key=read_key(tmp_path / key)) as store:
        database = store._database
        if ORIGINALS not in database.tables:
            return 0
        with database.reading() as transaction:
            return int(transaction.stat(database.tables[ORIGINALS])["entries"])


async def test_a_replay_on_this_machine_is_byte_exact(tmp_path: Path) -> None:
    """Heads, coded bodies, streams and bodies in files come as they came; on the disk no secret lies open, however it is written."""
    config = _config(tmp_path)
    url, said = await _record(config)
    again, receipt = await _play(config, url)
    assert again == said
    assert receipt.faithful, render_receipt(receipt)
    assert receipt.answers_replaced == 0
    assert "answers with secrets as recorded: 5 (seq 1, 2, 3, 4, 5)" in render_receipt(receipt)
    assert _lying_there(tmp_path / "store") == []
    with open_store(config, readonly=True) as store:
        for run in ("r", "r@1"):
            for exchange in store.exchanges.all(store.runs.get(run)):
                assert not find_written(SECRETS, {"": repr(exchange).encode()})
            for event in store.events.read(store.runs.get(run)):
                assert not find_written(SECRETS, {"": repr(event).encode()})


async def test_without_the_setting_a_replay_has_placeholders(tmp_path: Path) -> None:
    """As ever: what is kept is not given, and nothing new is kept."""
    config = _config(tmp_path)
    url, said = await _record(config)
    before = _count(tmp_path)
    again, receipt = await _play(_config(tmp_path, secrets=Secrets.REPLACED), url)
    assert again != said
    assert (receipt.answers_replaced, receipt.answers_as_recorded) == (5, 0)
    assert receipt.faithful
    assert before == _count(tmp_path) == 5


async def test_a_store_without_a_key_keeps_nothing(tmp_path: Path) -> None:
    """Whatever its configuration says."""
    config = Config(store=tmp_path / "store", secrets=Secrets.ENCRYPTED)
    await _record(config)
    assert _lying_there(tmp_path / "store") == []
    assert not find_written(SECRETS, dict(kept_bytes(tmp_path / "store")))
    with Store.open(tmp_path / "store", readonly=True) as store:
        assert ORIGINALS not in store._database.tables


async def test_messages_of_websockets_come_as_they_came(tmp_path: Path) -> None:
    """What the server said, and why it was closed; what the client says of it is the same secret."""
    config = _config(tmp_path)
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/rates"

        async def talk(running: Running) -> list[str]:
            heard = []
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(url, proxy=running.url_for("r")) as one,
            ):
                for text in (f"use {NESTED}", f"again {NESTED} and {DEEP}"):
                    await one.send_str(text)
                    heard.append((await one.receive()).data)
                await one.close(code=1000)
            return heard

        async with running_engine(config) as running:
            said = await talk(running)
            await running.end("r")
    async with running_engine(config) as running:
        running.play()
        assert await talk(running) == said
        await running.end("r@1")
        receipt = build(running.store, running.store.runs.get("r@1"))
    assert receipt.faithful
    assert (receipt.answers_replaced, receipt.answers_as_recorded) == (0, 1)
    assert _lying_there(tmp_path / "store") == []
    assert _command(tmp_path, "verify").return_value in (0, None)


async def test_nothing_that_leaves_the_store_has_them(tmp_path: Path) -> None:
    """Exports of every kind, listings, an archive and another store have placeholders."""
    config = _config(tmp_path)
    url, _ = await _record(config)
    out = tmp_path / "out"
    out.mkdir()
    told = {}
    for at, words in enumerate(
        (
            ("export", "r", "--tape", str(out / "r.tape")),
            ("show", "r", "--json"),
            ("show", "r", "3"),
            ("receipt", "r", "--json"),
            ("verify", "--json"),
        )
    ):
        done = _command(tmp_path, *words)
        assert done.return_value in (0, None), done.output
        told[str(at)] = done.output.encode()
    assert find_written(SECRETS, told) == []
    assert _lying_there(out) == []
    other = Config(store=tmp_path / "other")
    (tmp_path / "other.yaml").write_text("store: other\n")
    CliRunner().invoke(cli, ["import", str(out / "r.tape"), "-c", str(tmp_path / "other.yaml")], standalone_mode=False, catch_exceptions=False)  # fmt: skip
    _, receipt = await _play(other, url)
    assert (receipt.answers_replaced, receipt.answers_as_recorded) == (5, 0)


async def test_archive_erase_and_rewrite_drop_them(tmp_path: Path) -> None:
    """A run that comes back from an archive has none; what is erased or rewritten leaves none."""
    pytest.importorskip("pyarrow", reason="the extra `archive` is not installed")
    config = _config(tmp_path)
    url, _ = await _record(config)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    more = "retention: {hot: 0s, archive: attic, keep: 30d}\n"
    assert _command(tmp_path, "archive", "r", "--unencrypted", more=more).return_value in (0, None)
    assert _count(tmp_path) == 0
    assert _lying_there(tmp_path / "attic") == []
    assert _command(tmp_path, "show", "r").return_value in (0, None)
    _, receipt = await _play(config, url)
    assert (receipt.answers_replaced, receipt.answers_as_recorded) == (5, 0)
    for words in (("erase", "r", "--yes"), ("redact", "--rewrite", "r")):
        shutil.rmtree(tmp_path / "store")
        shutil.copytree(tmp_path / "copy", tmp_path / "store")
        (tmp_path / "playhead.yaml").unlink()
        rule = 'redact: [{pattern: "expires_in"}]\n'
        done = _command(tmp_path, *words, more=rule)
        assert done.return_value in (0, None), done.output
        assert _count(tmp_path) == 0
        assert _command(tmp_path, "verify").return_value in (0, None)


async def test_rekey_encrypts_them_anew_or_drops_them(tmp_path: Path) -> None:
    """Under another key from outside they are given as before; without one, or with one beside the store, they are gone."""
    config = _config(tmp_path)
    url, said = await _record(config)
    make_key_file(tmp_path / "b.key")
    make_key_file(tmp_path / "store" / "inside.key")
    assert "rows" in _command(tmp_path, "rekey", "--to-key-file", str(tmp_path / "b.key")).output
    new = _config(tmp_path, encrypt=Encrypt(tmp_path / "b.key"))
    again, _ = await _play(new, url)
    assert again == said
    assert _count(tmp_path, "b.key") == 5
    (tmp_path / "playhead.yaml").write_text(
        "store: store\nencrypt: {key_file: b.key}\nsecrets: encrypted\n"
    )
    done = _command(tmp_path, "rekey", "--to-key-file", str(tmp_path / "store" / "inside.key"))
    assert "5 originals of secrets were removed" in done.output
    assert _count(tmp_path, "store/inside.key") == 0
    (tmp_path / "playhead.yaml").write_text("store: store\nencrypt: {key_file: store/inside.key}\n")
    assert _command(tmp_path, "rekey", "--decrypt").return_value in (0, None)
    assert _lying_there(tmp_path / "store") == []


async def test_verify_names_originals_that_do_not_fit(tmp_path: Path) -> None:
    """A row that is in another's place; a replay refuses what needs it, and says why."""
    config = _config(tmp_path)
    url, _ = await _record(config)
    assert _command(tmp_path, "verify").return_value in (0, None)
    with open_store(config) as store:
        database, run = store._database, store.runs.get("r")

        def swap(transaction: object) -> None:
            for place, value in list(transaction.cursor(database.tables[ORIGINALS]))[:1]:  # type: ignore[attr-defined]
                key, plain = database.cipher.decrypt_row(ORIGINALS, bytes(place), bytes(value))
                database.put(transaction, ORIGINALS, key[:-1] + b"\2", plain)  # type: ignore[arg-type]

        store.writer.call(swap)
        assert run.exchanges == 5
    done = _command(tmp_path, "verify")
    assert done.return_value == 1
    assert "its originals: they are those of another exchange" in done.output
    async with running_engine(config) as running, aiohttp.ClientSession() as session:
        running.play()
        seen = []
        for path in ("/login", "/zipped"):
            async with session.post(url + path, proxy=running.url_for("r")) as answer:
                seen.append((answer.status, "its originals" in await answer.text()))
        await running.end("r@1")
        receipt = build(running.store, running.store.runs.get("r@1"))
    assert seen == [(200, False), (424, True)]
    assert not receipt.faithful
