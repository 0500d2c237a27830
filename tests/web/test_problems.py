"""What the page says if something is wrong: one sentence, what to do, and the nearest names; never a trace of ours."""

import asyncio
import html
import signal
import socket
import subprocess
from pathlib import Path

import lmdb
import pytest

from playhead.store import Store, make_key_file
from playhead.tests.support.browser import Browser
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.process import playhead, wait_until
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.refund_store import RUN, write_refund_store

_STEP, _DATA = f"/runs/{RUN}?seq=", f"/data/runs/{RUN}/steps/"

# By path: the status, and what is said; of a page in its text, of data in its four texts.
WRONG: dict[str, tuple[int, tuple[str, ...]]] = {
    "/runs/refnud": (404, ("No run is named 'refnud'", "/runs/refund")),
    "/runs/refund@9": (404, ("No run is named 'refund@9'", "/runs/refund%401")),
    "/runs/zzzz": (404, ("No run is named 'zzzz'", "/runs")),
    f"{_STEP}99": (404, ("Run 'refund' has no step 99", "1 to 7", "seq=7")),
    f"{_STEP}0": (404, ("Run 'refund' has no step 0", "1 to 7", "seq=1")),
    f"{_STEP}99999999999999999999999999": (404, ("Run 'refund' has no step", "1 to 7", "seq=7")),
    f"{_STEP}6.9": (404, ("Run 'refund' has no step 6.9", "seq=6")),
    f"{_STEP}-1": (400, ("seq", "'-1'", "seq=6")),
    f"{_STEP}six": (400, ("seq", "'six'")),
    f"{_STEP}1e3": (400, ("seq", "'1e3'")),
    f"{_STEP}%E0%A5%AC": (400, ("seq",)),
    f"{_STEP}6%00": (400, ("seq",)),
    f"{_STEP}": (400, ("seq",)),
    f"{_STEP}6&seq=4": (400, ("seq",)),
    f"{_STEP}6&view=pretty": (400, ("view", "'pretty'", "raw")),
    "/diff/refund/refnud": (404, ("No run is named 'refnud'", "refund-fixed")),
    "/diff/refund": (404, ()),
    "/diff/refund/refund": (200, ()),
    "/nowhere": (404, ("/runs",)),
    "/runs?in=body&q=x": (400, ("in", "'body'", "url")),
    "/runs?in=body": (400, ("in", "'body'", "url")),
    "/runs?tree=maybe": (400, ("tree", "'maybe'", "1")),
    "/diff/refund/refund?all=some": (400, ("all", "'some'", "1")),
    f"/data/runs/{RUN}/place?at=nan": (400, ("at", "'nan'", "from 0 to 1")),
    f"/data/runs/{RUN}/place?at=2": (400, ("at", "'2'", "from 0 to 1")),
    f"/data/runs/{RUN}/attempts?number=x": (400, ("number", "'x'")),
    f"/data/runs/{RUN}/attempts?number=1": (404, ("No such attempt",)),
    "/data/runs/refnud": (404, ("No run is named 'refnud'", "refund")),
    f"{_DATA}99": (404, ("has no step 99", "1 to 7")),
    f"{_DATA}6/body?side=both": (400, ("side", "'both'", "request")),
    f"{_DATA}6/body?side=request&from=1000000": (200, ()),
    f"{_DATA}6/blame": (400, ("path",)),
    f"{_DATA}6/blame?path=%24%5B": (400, ("$[",)),
    f"/data/runs/{RUN}/moves?of=color&seq=1&go=next": (400, ("of", "'color'", "effects")),
    f"/data/runs/{RUN}/moves?of=time&seq=1&go=up": (400, ("go", "'up'", "next")),
    f"/data/runs/{RUN}/strip?width=0": (400, ("width", "'0'")),
    "/data/nowhere": (404, ()),
}


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_address_is_explained(refund_ui: Ui, path: str) -> None:
    """Pages have one heading of level 1; data has the four texts of an error."""
    status, words = WRONG[path]
    answer = refund_ui.ask(path, refund_ui.cookie)
    assert answer.status == status
    said = _plain(answer.text)
    assert [one for one in words if one not in said] == []
    assert "Traceback" not in said
    if status >= 400 and path.startswith("/data/"):
        assert set(answer.json) == {"error", "expected", "found", "hint"}
    elif status >= 400:
        assert said.count("<h1") == 1


@pytest.mark.parametrize("query", ["view=pretty", "seq=six", "view=raw&view=raw"])
def test_a_value_is_read_of_a_run_without_a_step_too(tmp_path: Path, query: str) -> None:
    """Whatever a run has, a value that cannot be read is said to be none."""

    async def write(store: Store) -> None:
        await store.runs.create("idle", mode="record", at_ns=1)

    with Ui(write_store(tmp_path / "store", write)) as ui:
        assert ui.ask(f"{path_of('idle')}?{query}", ui.cookie).status == 400
        for at in ("nan", "2", "-1", ""):
            assert ui.ask(f"/data{path_of('idle')}/place?at={at}", ui.cookie).status == 400, at


def _plain(text: str) -> str:
    return html.unescape(text)


def test_a_store_that_cannot_be_opened_ends_the_command(tmp_path: Path) -> None:
    """With 2 and a sentence: none there, another key, a newer format; and so do flags that make no sense."""
    store = write_refund_store(tmp_path / "store")
    make_key_file(tmp_path / "a.key")
    newer = write_refund_store(tmp_path / "newer")
    with lmdb.open(str(newer / "log.lmdb"), max_dbs=20) as environment:
        meta = environment.open_db(b"meta")
        with environment.begin(write=True) as transaction:
            transaction.put(b"format", b"99", db=meta)
    wrong: dict[tuple[str, ...], str] = {
        ("--store", str(tmp_path / "none")): "none",
        ("--store", str(newer)): "newer Playhead",
        ("refnud", "--store", str(store)): "refund",
        ("--port", "99999", "--store", str(store)): "port",
        ("--store", str(store), "--", "true"): "--allow-run",
        ("--allow-run", "--store", str(store), "--", "no-such-command"): "no-such-command",
    }
    for words, said in wrong.items():
        done = playhead("ui", "--no-browser", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert done.stdout == ""
    assert playhead("rekey", "--new-key", tmp_path / "b.key", "--store", store).returncode == 0
    config = tmp_path / "f.yaml"
    config.write_text(f"store: {store}\nencrypt: {{key_file: a.key}}\n")
    done = playhead("ui", "--no-browser", "-c", config)
    assert (done.returncode, "key" in done.stderr) == (2, True)


def test_an_archived_run_is_fetched_and_shown(tmp_path: Path) -> None:
    """With a bar until it is there. If its archive is gone, the page says so, and the others are still shown."""
    pytest.importorskip("pyarrow")
    store = write_refund_store(tmp_path / "store")
    config = tmp_path / "f.yaml"
    config.write_text(f"store: {store}\nretention: {{hot: 0s, archive: attic, keep: 3650d}}\n")
    assert playhead("archive", "nightly-0", "nightly-1", "-c", config).returncode in (0, 1)
    with Ui(store, "-c", str(config)) as ui:
        cookie = ui.open_session()
        assert "archived" in ui.ask("/runs", cookie).text
        check_search(ui, cookie)
        # It is no empty run, nor compared as one.
        for path in (f"/data{path_of('nightly-1')}/steps", f"/data/diff/nightly-1/{RUN}"):
            assert ui.ask(path, cookie).status == 503, path
        assert ui.ask(path_of("nightly-0"), cookie).status == 200
        _wait_for(ui, cookie, path_of("nightly-0", 4), "/v1/refunds")
        (tmp_path / "attic").rename(tmp_path / "away")
        answer = ui.ask(path_of("nightly-1"), cookie)
        assert answer.status == 503
        assert "Traceback" not in answer.text
        for _ in range(2):  # whoever asks later is told, too
            told = ui.ask(f"/data{path_of('nightly-1')}/fetched", cookie).json
            assert (told["done"], "cannot be" in told["error"]) == (False, True), told
        assert ui.ask(path_of(RUN), cookie).status == 200


def check_search(ui: Ui, cookie: str) -> None:
    """Archived runs are found by their rows; where their texts were not searched, the page says so, and how they are."""
    for query, names in (("q=nightly-1&in=text", {"nightly-1"}), ("q=refunds&in=url", {RUN})):
        told = ui.ask(f"/data/runs?{query}", cookie).json
        found = {one["id"] for one in told["runs"]}
        assert names <= found
        left = {"nightly-0", "nightly-1"} - found
        assert (told["not_searched"], told["complete"]) == (len(left), True)
        page = ui.ask(f"/runs?{query}", cookie).text
        assert all(name in page for name in left)
        assert "playhead runs --grep" in page
    assert ui.ask("/data/runs?q=nightly&in=label", cookie).json["not_searched"] == 0
    assert "playhead runs --grep" not in ui.ask("/runs", cookie).text


def _wait_for(ui: Ui, cookie: str, path: str, words: str) -> None:
    wait_until(lambda: words in ui.ask(path, cookie).text, timeout_s=30)


async def test_a_server_that_ended_or_hangs_is_noticed(
    refund_store: Path, browser: Browser
) -> None:
    """By an alert, on each page; the controls that change something are disabled, and enabled once it answers again."""
    with Ui(refund_store, "--allow-run") as ui:
        await ui.show(browser)
        for path in ("/gates", path_of(RUN, 6)):
            await ui.go(browser, path)
            await browser.until("document.body?.dataset.watched === 'yes'")
            ui.hang()
            await browser.find("alert", "")
            await browser.shows("Playhead does not answer")
            ui.go_on()
            await browser.until("!document.body.innerText.includes('Playhead does not answer')")
        ui.stop()
        await browser.shows("Playhead does not answer", "playhead ui")


async def test_a_tab_keeps_no_connection(refund_ui: Ui, browser: Browser) -> None:
    """A browser has six connections to one server, and the seventh tab would wait for ever: each answer ends at once."""
    await refund_ui.show(browser, path_of(RUN, 6))
    asked = (
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('/data/now'))"
    )
    await browser.until(f"{asked}.filter((one) => one.responseEnd).length > 2")
    assert not any("/data/events" in one for one in browser.asked)


async def test_many_tabs_are_served(refund_store: Path) -> None:
    """Of twenty open streams of events none keeps a page from being answered."""
    with Ui(refund_store) as ui:
        cookie = ui.open_session()
        head = f"GET /data/events HTTP/1.1\r\nHost: {ui.host}\r\nCookie: {cookie}\r\n\r\n".encode()
        opened = []
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", ui.port)
            writer.write(head)
            assert b" 200 " in await asyncio.wait_for(reader.readline(), 30)
            opened.append(writer)
        answer = await asyncio.to_thread(ui.ask, path_of(RUN), cookie)
        assert answer.status == 200
        for writer in opened:
            writer.close()


def test_the_command_ends_by_a_signal_at_once(refund_store: Path) -> None:
    """Also with a stream of events open: Ctrl-C is no error, and leaves no traceback."""
    with Ui(refund_store) as ui:
        cookie = ui.open_session()
        with socket.create_connection(("127.0.0.1", ui.port), 30) as sock:
            sock.sendall(
                f"GET /data/events HTTP/1.1\r\nHost: {ui.host}\r\nCookie: {cookie}\r\n\r\n".encode()
            )
            assert b" 200 " in sock.recv(100)
            ui.process.send_signal(signal.SIGINT)
            try:
                _, err = ui.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                raise AssertionError("ui did not end") from None
            assert (ui.process.returncode, b"Traceback" in err) == (0, False)
