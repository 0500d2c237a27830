"""A deck: an engine on a thread of its own that records runs and plays them again.

For tests whose clients block, and for properties, where starting a proxy for each example would cost more
than all the rest. It stands on the loop that the product uses.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self

from playhead.config import Config, Mode
from playhead.proxy.engine.event_loop import new_event_loop
from playhead.store import RunInfo
from playhead.tape.exchange import Exchange
from playhead.timeline import Receipt, build

from .engine import Running, running_engine

_LONG_S = 20.0


class Deck:
    """A recording and playing engine. Use as a context manager."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None
        self._stop: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self.running: Running

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_LONG_S), "the engine did not start"
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_LONG_S)
        assert not self._thread.is_alive(), "the engine did not stop"
        if self._failure is not None:
            raise self._failure

    @property
    def proxy(self) -> tuple[str, int]:
        """Where it listens."""
        return self.running.address.host, self.running.address.port

    def record(self) -> None:
        """Record the runs that begin from now on."""
        self.do(self._change, Mode.RECORD)

    def play(self) -> None:
        """Play the runs that begin from now on."""
        self.do(self._change, Mode.PLAYBACK)

    def end(self, run: str) -> None:
        """Seal a run as soon as nothing of it is on its way."""
        self.do(self._end, run)

    def tape(self, run: str) -> list[Exchange]:
        """Give what was recorded, in order."""
        return list(self.running.store.exchanges.all(self._get(run)))

    def receipt(self, run: str) -> Receipt:
        """Give the account of a run."""
        return build(self.running.store, self._get(run))

    def do(self, act: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        """Have a coroutine function run on the engine's loop; give what it gives."""
        return asyncio.run_coroutine_threadsafe(act(*arguments), self._loop).result(_LONG_S)

    def _get(self, run: str) -> RunInfo:
        return self.running.store.runs.get(run)

    async def _change(self, mode: Mode) -> None:
        self.running.change(mode=mode)

    async def _end(self, run: str) -> None:
        open_run = self.running.open_run(run)
        assert await open_run.settled(_LONG_S), "a pending exchange was never finished"
        await self.running.end(run)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with running_engine(self._config) as self.running:
            self._ready.set()
            await self._stop.wait()
