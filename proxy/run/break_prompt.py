"""The prompt at a breakpoint: what is held is shown, and a line of standard input says what becomes of it.

The command that runs has no standard input then, and not the terminal: both are ours.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from ... import PlayheadError
from ...addons.run.lifecycle.held_at_breakpoints import BreakError, Breaks, HeldAtBreak
from ...addons.run.pending_exchange import PendingExchange
from ...tape.diff.divergence_types import one_line
from ...tape.policy.breakpoints import BreakCommand
from ...timeline.receipts.render_text import show_text
from ..file_or_editor_text import edit_text, read_file
from ..standard_streams import print_status

HELP = "step (s), continue (c), answer FILE, answer --edit, quit (q)"
_SHORT = {"s": "step", "c": "continue", "q": "quit"}
_BODY = 2000
"""Bytes of a body that are shown."""
_LINE = 4096


def take_stdin() -> int:
    """Take standard input from whatever is started later; give its descriptor."""
    taken = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return taken


class BreakPrompt:
    """Asks what becomes of each request that is held, one after another."""

    def __init__(
        self,
        breaks: Breaks,
        stdin: int,
        *,
        release: Callable[[str], str] | None,
    ) -> None:
        """Ask by lines of a descriptor.

        release: gives the command by which somebody lets go what has a name, where nobody is here; None where nobody can.
        """
        self._breaks = breaks
        self._stdin = stdin
        self._release = release
        self._held: asyncio.Queue[HeldAtBreak] = asyncio.Queue()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._ended = False
        # Of its own: an editor is open for long, and the loop's threads may all be at work.
        self._own = ThreadPoolExecutor(1, thread_name_prefix="playhead-editor")
        breaks.on_held.append(self._held.put_nowait)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Ask for as long as the context lasts."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                with os.fdopen(self._stdin, errors="replace", closefd=False) as lines:
                    for line in iter(lambda: lines.readline(_LINE), ""):
                        loop.call_soon_threadsafe(self._lines.put_nowait, line)
                loop.call_soon_threadsafe(self._lines.put_nowait, None)
            except RuntimeError:  # the loop has ended
                return
            except OSError as error:
                print_status(f"playhead: standard input cannot be read: {error}")
                loop.call_soon_threadsafe(self._lines.put_nowait, None)

        # A daemon: nobody waits for a line that does not come.
        threading.Thread(target=read, name="playhead-prompt", daemon=True).start()
        task = loop.create_task(self._ask())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._own.shutdown(wait=False)

    async def _ask(self) -> None:
        try:
            await self._ask_on()
        except Exception as error:  # an agent that is held by nobody would wait for ever
            print_status(
                f"playhead: the prompt failed, so it goes on without breakpoints: {error!r}"
            )
            self._breaks.disable()

    async def _ask_on(self) -> None:
        while True:
            held = await self._held.get()
            if not held.done.is_set():
                print_status("\n".join(describe(held)))
                if self._ended:
                    self._go_on(held)
            while not held.done.is_set():
                line = await self._next_line(held)
                if line is not None and not await self._do(held, line):
                    print_status(f"playhead: expected one of: {HELP}")

    async def _next_line(self, held: HeldAtBreak) -> str | None:
        """Give the next line; None where what is held was let go meanwhile, or nobody is here."""
        if self._ended:
            await held.done.wait()
            return None
        waiting = asyncio.ensure_future(self._lines.get())
        over = asyncio.ensure_future(held.done.wait())
        await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if not waiting.done():
            waiting.cancel()
            return None
        line = waiting.result()
        if line is None:
            self._ended = True
            self._go_on(held)
        return line

    def _go_on(self, held: HeldAtBreak) -> None:
        """Say what happens where nobody is here."""
        if self._release is not None:
            print_status(
                f"playhead: {held.name} is held, as standard input has ended; this lets it go, as does the page of"
                f" `playhead ui --allow-run`:\n  {self._release(held.name)}"
            )
            return
        print_status("playhead: nobody can be asked: it goes on without breakpoints")
        self._breaks.disable()

    async def _do(self, held: HeldAtBreak, line: str) -> bool:
        """Do what a line says; False where it says nothing that is known."""
        word, _, rest = line.strip().partition(" ")
        word, rest = _SHORT.get(word, word), rest.strip()
        try:
            if word == BreakCommand.ANSWER.value and rest:
                reading = asyncio.get_running_loop().run_in_executor(
                    self._own, self._read, held, rest
                )
                self._breaks.answer(held, await reading)
            elif word in (BreakCommand.STEP, BreakCommand.CONTINUE, BreakCommand.QUIT) and not rest:
                await self._breaks.decide(held, BreakCommand(word))
            else:
                return False
            await held.done.wait()
        except (PlayheadError, BreakError) as error:
            print_status(f"playhead: {one_line(str(error), 400)}")
        return True

    def _read(self, held: HeldAtBreak, what: str) -> bytes:
        """Read an answer from a file, or from the editor. Blocks. Raises: PlayheadError."""
        if what != "--edit":
            return read_file(Path(what))
        from ...tape.edits.edit_answer import read_plain_answer

        recorded = held.read_recorded()
        text = read_plain_answer(recorded) if recorded is not None else b"{}\n"
        return edit_text(text, f"answer-{held.pending.seq}")


def describe(held: HeldAtBreak) -> list[str]:
    """Say what is held, and what becomes of it."""
    pending = held.pending
    decision, recorded = pending.decision, held.read_recorded()
    lines = [f"── held at {one_line(held.why)}: {held.name} " + "─" * 12, *_asked(pending)]
    if decision is not None:
        lines.append(f"  {decision.verdict.value}: {one_line(decision.reason)}")
    if recorded is not None and recorded.response is not None:
        response = recorded.response
        lines.append(f"  recorded answer, tape seq {recorded.seq}: {response.status}")
        lines += _body(response.body)
    lines.append(f"  {HELP}")
    return lines


def _asked(pending: PendingExchange) -> list[str]:
    if pending.request is None:
        return []
    request = pending.with_body()
    return [f"  {one_line(f'{request.method} {request.url}', 300)}", *_body(request.body)]


def _body(body: bytes) -> list[str]:
    shown = show_text(body[:_BODY]).splitlines()
    more = [f"… {len(body) - _BODY:,} bytes more"] if len(body) > _BODY else []
    return [f"    {line}" for line in [*shown, *more]]
