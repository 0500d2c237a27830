"""An agent that is recorded into an encrypted store, and played from it: nothing of it lies open."""

import sys
from pathlib import Path

from aiohttp import web
from click.testing import CliRunner, Result

from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import Config, Encrypt
from playhead.proxy.cli import cli
from playhead.store import Store, make_key_file
from playhead.tests.support.ciphers import find_raw
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead

WORD = b"walrus-confidential-0815"
LARGE = WORD * (HELD_BYTES // len(WORD) + 20_000)


async def _answer(request: web.Request) -> web.StreamResponse:
    if request.path == "/large":
        return web.Response(body=LARGE)
    return web.Response(body=b"said " + await request.read())


async def _ask(running: Running, url: str) -> list[bytes]:
    connection = await Connection.open(str(running.address))
    said = []
    for path, body in (("/small", WORD), ("/large", b""), ("/small", LARGE)):
        answer = await connection.ask(
            url + path, body=body, host="127.0.0.1", credentials="walrus:x"
        )
        said.append(answer.body)
    await connection.close()
    return said


async def test_what_an_encrypted_store_recorded_is_played(tmp_path: Path) -> None:
    """Small and large bodies, both ways; without the key neither text nor name of the run can be found."""
    make_key_file(tmp_path / "a.key")
    folder = tmp_path / "store"
    config = Config(store=folder, encrypt=Encrypt(tmp_path / "a.key"))
    with Origin({"/small": _answer, "/large": _answer}) as origin:
        async with running_engine(config) as running:
            first = await _ask(running, origin.url)
            await running.end("walrus")
            asked = len(origin.requests)
            running.play()
            again = await _ask(running, origin.url)
            await running.end("walrus@1")
        assert len(origin.requests) == asked == 3
    assert first == again == [b"said " + WORD, LARGE, b"said " + LARGE]
    assert not list(find_raw(folder / "log.lmdb", [b"walrus"]))
    kept = next(path for path in folder.iterdir() if path.name.startswith("bodies-"))
    assert len(list(kept.glob("??/*"))) >= 3
    assert not list(find_raw(kept, [b"walrus"]))
    _read_back(tmp_path, folder)


def _read_back(tmp_path: Path, folder: Path) -> None:
    """Look at it by commands, with the key."""
    file = tmp_path / "playhead.yaml"
    file.write_text(f"store: {folder}\nencrypt: {{key_file: a.key}}\n")
    for words, told in (
        (("verify",), "walrus: sound, 3 exchanges"),
        (("receipt", "walrus@1"), "FAITHFUL: replay of walrus"),
        (("show", "walrus", "1"), WORD.decode()),
    ):
        done = _command(*words, "-c", str(file))
        assert done.exit_code == 0, done.output
        assert told in done.output


def _command(*words: str) -> Result:
    return CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)


def test_the_launcher_records_with_a_key_of_the_environment(tmp_path: Path) -> None:
    """And does not hand it to the command."""
    (tmp_path / "show.py").write_text(
        "import os; print(sorted(name for name in os.environ if 'ENCRYPTION' in name))"
    )
    key = make_key_file(tmp_path / "a.key")
    store = tmp_path / "store"
    done = playhead(
        *("record", "--store", store, "--run", "tape", "--", sys.executable, tmp_path / "show.py"),
        env={"PLAYHEAD_ENCRYPTION_KEY": key.secret.hex()},
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    with Store.open(store, readonly=True, key=key) as opened:
        assert [run.id for run in opened.runs.all()] == ["tape"]
