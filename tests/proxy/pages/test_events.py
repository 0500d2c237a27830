"""How it is now: what a tab asks for again and again is answered at once."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config
from playhead.proxy.control.ask_processes import Held
from playhead.proxy.pages import events
from playhead.proxy.pages.request_and_reply import Asked
from playhead.proxy.pages.sessions import Rights
from playhead.proxy.pages.store_reader import Library
from playhead.tests.support.process import wait_until
from playhead.tests.web.cases.refund_store import RUN, STEPS, write_refund_store


def _look(now: events.Now, **query: str) -> Any:
    return json.loads(now.look(Asked("GET", "/data/now", {}, query, Rights.READ)).body)


def test_a_proxy_that_hangs_keeps_no_tab_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once for all tabs; what it holds is told once it has said so."""
    over, asked = threading.Event(), []

    def list_held(*words: object) -> Held:
        asked.append(words)
        over.wait(60)
        gate = {"id": "r:1", "digest": "d"}
        return Held([gate], 1, [{"id": "r:2", "since_ns": 1}], {}, {7: "it hangs"})

    monkeypatch.setattr(events, "list_held", list_held)
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    now = events.Now(library)
    told = [_look(now, run=RUN) for _ in range(3)]
    assert ["gate" in one for one in told] == [False, False, False]
    assert len(asked) == 1
    over.set()
    wait_until(lambda: _look(now).get("gate", {}).get("held") == 2, timeout_s=60)
    assert library.close()


def test_what_has_not_changed_is_told_alike(tmp_path: Path) -> None:
    """Of a run that was sealed each answer is the same; it says how far its log was read."""
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    now = events.Now(library)
    wait_until(lambda: _look(now, run=RUN)["step"]["complete"], timeout_s=60)
    first, second = (_look(now, run=RUN) for _ in range(2))
    assert first == second
    assert first["step"]["total"] == STEPS
    assert first["step"]["revision"] > STEPS
    assert _look(now)["run"] != first["run"]
    assert library.close()
