"""Running again from the page: an edited answer runs the command of the command line, and no other, as a branch."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from playhead.proxy.control.http.route import BODY_BYTES
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.browser import Browser
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead, read_json, wait_until
from playhead.tests.support.recordings import record_run
from playhead.tests.support.refund_service import AGENT, serve
from playhead.tests.web.cases.page_process import Ui, path_of
from playhead.tests.web.cases.refund_store import RUN, write_refund_store

_BRANCH = "/data/runs/tape/branch"
EDITED = '{"order": 7, "amount": 10}'
"""Another answer to 2, the order."""


class World(NamedTuple):
    """A shop that counts what it is asked, and a store with a tape of the agent."""

    shop: Origin
    store: Path

    @property
    def agent(self) -> tuple[str, ...]:
        """The command."""
        return (sys.executable, *AGENT, self.shop.url)

    def branches(self) -> list[dict[str, Any]]:
        """The runs whose parent is the tape."""
        return [one for one in read_json("runs", "--store", self.store) if one["parent"] == "tape"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Origin({"/{tail:.*}": serve}) as shop:
        words = ("--store", tmp_path / "store", "--run", "tape", "-q", "--")
        done = playhead("record", *words, sys.executable, *AGENT, shop.url)
        assert done.returncode == 0, done.stderr
        shop.requests.clear()
        yield World(shop, tmp_path / "store")
        assert shop.requests == []  # a branch without declarations sends nothing


def test_an_edited_answer_runs_the_command_as_a_branch(world: World) -> None:
    """Once; its parent is the tape, and it opens as a diff with that."""
    with Ui(world.store, "--allow-run", "--", *world.agent) as ui:
        cookie = ui.open_session()
        told = ui.post(_BRANCH, cookie, {"at": 2, "answer": EDITED})
        assert told.status in (200, 202), told.text
        wait_until(lambda: [one["status"] for one in world.branches()] == ["sealed"], timeout_s=60)
        (made,) = world.branches()
        assert ui.ask(f"/diff/tape/{made['id'].replace('@', '%40')}", cookie).status == 200
        receipt = read_json("receipt", "--store", world.store, made["id"])
        assert receipt["counts"]["hypothetical"] == 1


# Of a body that asks for a branch: the status, and what is said.
REFUSED: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"at": 99, "answer": EDITED}, 404, "99"),
    ({"at": "2", "answer": EDITED}, 422, "at"),
    ({"at": 2}, 422, "answer"),
    ({"at": 2, "answer": EDITED, "system": "x"}, 422, "system"),
    ({"at": 1, "answer": '{"choices": 7}'}, 409, "$.choices"),
    ({"at": 1, "answer": "no JSON"}, 409, ""),
    ({"at": 2, "answer": EDITED, "command": ["touch", "pwned"]}, 422, "command"),
    ({"at": 2, "answer": EDITED, "live": ["inference"]}, 422, "live"),
    ({"at": 2, "answer": EDITED, "env": {"PATH": "."}}, 422, "env"),
)


def test_what_cannot_be_a_branch_runs_nothing(world: World) -> None:
    """Each is refused with a sentence before the command is started."""
    with Ui(world.store, "--allow-run", "--", *world.agent) as ui:
        cookie = ui.open_session()
        for body, status, said in REFUSED:
            told = ui.post(_BRANCH, cookie, body)
            assert (told.status, said in told.text) == (status, True), (body, told.text)
        assert world.branches() == []


def test_an_answer_may_be_as_long_as_the_control_api_takes(world: World) -> None:
    """A longer one is refused with the limit and the way out."""
    body = {"at": 2, "answer": json.dumps({"order": 7, "amount": 10, "more": "x" * 1_500_000})}
    with Ui(world.store, "--allow-run", "--", *world.agent) as ui:
        cookie = ui.open_session()
        told = ui.post(_BRANCH, cookie, body)
        assert told.status == 202, told.text
        number = told.json["number"]
        look = f"/data/runs/tape/attempts?number={number}"
        wait_until(lambda: ui.ask(look, cookie).json["code"] is not None, timeout_s=60)
        (made,) = world.branches()
        assert (
            read_json("receipt", "--store", world.store, made["id"])["counts"]["hypothetical"] == 1
        )
        told = ui.post(_BRANCH, cookie, {"at": 2, "answer": "x" * BODY_BYTES})
        assert (told.status, told.json["expected"]) == (413, f"at most {BODY_BYTES} bytes")
        assert "--answer FILE" in told.json["hint"]


def test_without_the_flag_nothing_runs(world: World) -> None:
    """Nor without a command."""
    for flags in ((), ("--allow-run",)):
        with Ui(world.store, *flags) as ui:
            told = ui.post(_BRANCH, ui.open_session(), {"at": 2, "answer": EDITED})
            assert told.status in (403, 409)
    assert world.branches() == []


async def test_an_answer_is_edited_on_the_page(world: World, browser: Browser) -> None:
    """The exact command is shown before; the result opens beside its parent."""
    with Ui(world.store, "--allow-run", "--", *world.agent) as ui:
        await ui.show(browser, path_of("tape", 2))
        await browser.find("heading", r"^2\b")
        await browser.tab_to("textbox", "^Answer$")
        await browser.run("document.activeElement.select()")
        await browser.write(EDITED)
        shown = await browser.text()
        assert "playhead branch tape --at 2" in shown
        assert world.shop.url in shown
        await browser.click("button", "^Run again$")
        await browser.find("heading", r"^tape and tape@")
        assert browser.complaints == []


_MIXED = b"\n1\r\n2 EDIT\0\n3\r4\r\n\r\r5" + b"6\0\r\n" * 20_000
_GET = """
import sys
from urllib.request import Request, urlopen
asked = Request("http://shop.test/note", headers={"content-type": "application/json", "accept": "*/*"})
open(sys.argv[1], "wb").write(urlopen(asked).read())
"""


async def test_what_is_around_an_edit_is_as_it_was_recorded(
    tmp_path: Path, browser: Browser
) -> None:
    """Line ends of all kinds and NULs, which no text box holds, and more of them than a change of a ruling may have bytes."""
    store, got = tmp_path / "store", tmp_path / "got"
    with Store.open(store) as opened:
        asked = make_request("http://shop.test/note", b"", {"accept": "*/*"}, "GET")
        answer = make_response(_MIXED, headers={"content-type": "text/plain"})
        await asyncio.to_thread(
            record_run, opened, "tape", [(asked, answer)], kind=RequestClass.READ
        )
    command = (sys.executable, "-c", _GET, str(got))
    with Ui(store, "--allow-run", "--", *command) as ui:
        await ui.show(browser, path_of("tape", 1))
        await browser.click("button", "^Edit the recorded answer$")
        await browser.until("document.activeElement.value?.includes('EDIT')")
        await browser.run(
            "{ const box = document.activeElement; const at = box.value.indexOf('EDIT'); box.setSelectionRange(at, at + 4); true }"
        )
        await browser.write("edited")
        await browser.click("button", "^Run again$")
        await browser.find("heading", r"^tape and tape@")
    assert got.read_bytes() == _MIXED.replace(b"EDIT", b"edited")


async def test_a_page_to_read_shows_the_command_alone(world: World, browser: Browser) -> None:
    """It can be copied; there is no button."""
    with Ui(world.store) as ui:
        await ui.show(browser, path_of("tape", 2))
        await browser.find("heading", r"^2\b")
        buttons = await browser.nodes("button", "^Run again$")
        assert all(one.properties.get("disabled") for one in buttons)
        assert "playhead branch tape --at 2" in await browser.text()


def test_a_command_of_a_tape_is_never_run(tmp_path: Path) -> None:
    """The one on the command line is; the one that was recorded is shown."""
    store = write_refund_store(tmp_path / "store")
    with Ui(store, "--allow-run", cwd=tmp_path) as ui:
        told = ui.post(
            f"/data/runs/{RUN}/branch", ui.open_session(), {"at": 2, "answer": json.dumps({})}
        )
        assert told.status in (403, 409)
    assert len(read_json("runs", "--store", store)) == 6
