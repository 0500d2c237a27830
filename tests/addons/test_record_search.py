"""A large answer is searched for secrets by a thread of its own: nobody's write waits for that."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from playhead.config import Config, Mode
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.engine import running_engine
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.origins import Origin

SECRET = "Qz7Lm2xV9kT5dR8wNc1Hj6VuEs4bF3gY"
LARGE = 300_000


async def echo(request: web.Request) -> web.Response:
    """Say the secret of the request back, behind so many bytes as the path says."""
    said = json.loads(await request.read())["client_secret"]
    return web.Response(text="." * int(request.path[1:]) + f" {said} again")


def test_a_large_answer_is_searched_beside_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For what its request showed, too; a small one is searched by the writer."""
    found: list[tuple[bool, bool]] = []
    response = Redactor.response

    def noting(self: Redactor, answer: Any) -> Any:
        thread = threading.current_thread().name
        found.append((len(answer.body) > LARGE, thread == "playhead-writer"))
        return response(self, answer)

    monkeypatch.setattr(Redactor, "response", noting)
    asyncio.run(_record(tmp_path / "store"))
    assert (True, False) in found
    assert (False, True) in found
    assert (True, True) not in found
    kept = b"".join(data for _, data in kept_bytes(tmp_path / "store"))
    assert b" again" in kept
    assert SECRET.encode() not in kept


async def _record(store: Path) -> None:
    with Origin({"/{size}": echo}) as origin:
        config = Config(mode=Mode.RECORD, store=store)
        async with running_engine(config) as running, aiohttp.ClientSession() as client:
            for size in (10, LARGE):
                url = f"{origin.url}/{size}"
                auth = aiohttp.BasicAuth("tape", "x")
                sent = {"client_secret": SECRET, "n": size}
                async with client.post(
                    url, json=sent, proxy=running.url, proxy_auth=auth
                ) as answer:
                    assert SECRET in await answer.text()
            await running.end("tape")
