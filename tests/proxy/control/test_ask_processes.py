"""All processes of a store are asked at once: one that hangs keeps nobody waiting, and nothing is sent to it that it would do later."""

import asyncio
import subprocess
import time
from pathlib import Path

from playhead.config import Config
from playhead.proxy.control.address import find_addresses
from playhead.proxy.control.ask_processes import find_awake, find_gates, list_held
from playhead.tests.support import prepared
from playhead.tests.support.control import controlled
from playhead.tests.support.hung_process import hung_process

_ENOUGH_S = 15.0
"""Far less than the patience with a process that is asked alone, also on a slow machine."""


def _command(config: Config, *words: str) -> subprocess.CompletedProcess[str]:
    return prepared.run(
        [*prepared.OURS, "gates", *words, "--store", str(config.store)], text=True, timeout=60
    )


async def test_a_process_that_hangs_is_named_and_waited_for_no_longer(tmp_path: Path) -> None:
    """The others are listed; `playhead gates` says what that means."""
    config = Config(store=tmp_path / "store")
    async with controlled(config) as api:
        with hung_process(config.store) as hung:
            began = time.monotonic()
            found = await asyncio.to_thread(list_held, config)
            assert time.monotonic() - began < _ENOUGH_S
            assert (found.gates, found.breaks, list(found.silent)) == ([], [], [hung.pid])
            listed = await asyncio.to_thread(_command, config)
            assert (listed.returncode, listed.stdout) == (0, "nothing is held at a gate\n")
            assert f"playhead: process {hung.pid} did not answer" in listed.stderr
            awake, _ = await asyncio.to_thread(find_awake, config, find_addresses(config.store))
            assert [one.url for one in awake] == [api.server.url]
            assert await asyncio.to_thread(find_gates, config, awake, ["shop:1"]) == {}
            page = await asyncio.to_thread(_command, config, "--page")
            assert f"{api.server.url}/" in page.stdout


async def test_nothing_is_sent_that_a_process_that_hangs_would_do_later(tmp_path: Path) -> None:
    """It was asked whether it answers, and said to be the one with which nothing was done."""
    config = Config(store=tmp_path / "store")
    async with controlled(config):
        with hung_process(config.store) as hung:
            ruled = await asyncio.to_thread(_command, config, "approve", "shop:1")
            assert ruled.returncode == 2
            assert f"nothing was done: process {hung.pid}" in ruled.stderr
            assert [one.partition(b" ")[0] for one in hung.read_requests()] == [b"GET"]
