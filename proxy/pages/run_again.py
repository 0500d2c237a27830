"""Run the command that was given at the start as a branch: with another answer, or another system prompt, at one step.

The command is that of `--allow-run -- COMMAND`, and no request can name another one. What was edited goes into a file of its own and
from there to `playhead branch`, as a person would do it; its words are shown before it is run.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...tape.edits.edit_answer import (
    edit_answer,
    read_plain_answer,
    read_recorded_answer,
    restore_answer,
)
from ...tape.edits.editable_text import restore_lines
from ...tape.exchange import Exchange, RequestClass
from ...timeline.receipts.safe_terminal_text import plain_lines
from ...timeline.steps.model_context import read_context
from ..control.http.error_body import ControlError
from .request_and_reply import Asked, Reply, read_number, reply_json
from .store_reader import Library

REASON = "edited on the page"
_MOST = 48 * 1024
"""Characters of what is edited: a body has 64 KiB."""
MOST_EDITED = 48_000
"""Characters of a text that is given to be edited."""
_OUTPUT = 32_000
_KEPT = 20


@dataclass(slots=True)
class Attempt:
    """One run of the command."""

    process: "subprocess.Popen[bytes]"
    words: str
    output: bytearray = field(default_factory=bytearray)
    code: int | None = None


class RunAgain:
    """Runs the command, one run of it at a time."""

    def __init__(self, library: Library, command: tuple[str, ...]) -> None:
        self.command = command
        self._library = library
        self._given = library.words
        self._lock = threading.Lock()
        self._attempts: OrderedDict[str, Attempt] = OrderedDict()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """End what runs, and remove what was edited."""
        for attempt in self._attempts.values():
            if attempt.code is None:
                with contextlib.suppress(ProcessLookupError):
                    attempt.process.terminate()
        if self._folder is not None:
            self._folder.cleanup()

    def words(self, run: str, seq: int, what: str) -> str:
        """Give the exact command; the file that is edited is called `EDITED`."""
        return shlex.join(["playhead", *self._words(run, seq, what, "EDITED")])

    def _words(self, run: str, seq: int, what: str, file: str) -> list[str]:
        live = ["--live", "inference", "--reason", REASON] if what == "system" else []
        return [
            *("branch", run, "--at", str(seq), f"--{what}", file, *live),
            *("--yes", *self._given, "--", *(self.command or ("COMMAND",))),
        ]

    def begin(self, asked: Asked) -> Reply:
        """Begin a branch."""
        if not self.command:
            raise ControlError(
                403,
                "No command was given that may be run",
                expected="playhead ui --allow-run -- COMMAND",
            )
        run = asked.parameters["run"]
        at, text, what = _read_edit(asked)
        data = self._read(run, at, text, what)
        with self._lock:
            if any(one.code is None for one in self._attempts.values()):
                raise ControlError(
                    409, "The command is running already", hint="wait until it has ended"
                )
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="playhead-edited-")
            path = Path(self._folder.name) / f"{what}-{len(self._attempts)}"
            path.write_bytes(data)
            words = self._words(run, at, what, str(path))
            process = subprocess.Popen(
                [sys.executable, "-m", "playhead.proxy.cli", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
            attempt = Attempt(process, shlex.join(["playhead", *words]))
            number = str(process.pid)
            self._attempts[number] = attempt
            while len(self._attempts) > _KEPT:
                self._attempts.popitem(last=False)
        threading.Thread(target=_follow, args=(attempt,), daemon=True).start()
        return reply_json({"number": number, "command": attempt.words}, 202)

    def _read(self, run: str, at: int, text: str, what: str) -> bytes:
        """Give what was edited; see that there is such a step, and that it can take its place, before anything runs.

        What was not edited is as it was recorded, also where a text box cannot hold it.
        Raises: ControlError; UnknownRun.
        """
        store = self._library.store
        info = store.runs.get(run)
        exchange = store.exchanges.find(info, at)
        if exchange is None or not info.is_tape:
            raise ControlError(
                404,
                f"Run {run!r} has no step {at} to leave it at",
                expected="a step of a recording",
                found=str(at),
            )
        shown = dict(find_texts(exchange)).get(what)
        if what != "answer":
            text = restore_lines(shown, text) if shown is not None else text
            return text.encode("utf-8", "surrogatepass")
        if shown is not None:
            data = restore_answer(exchange, text)
            if data == read_recorded_answer(exchange):
                return data
        else:
            data = text.encode("utf-8", "surrogatepass")
        try:
            edit_answer(exchange, data)
        except ValueError as error:
            raise ControlError(
                409,
                f"This cannot be the answer of {at}: {str(error)[:300]}",
                expected="an answer that its dialect reads",
                hint="nothing was run",
            ) from None
        return data

    def look(self, asked: Asked) -> Reply:
        """Say how far a branch has come."""
        number = str(read_number(asked.query, "number", 0, 0, 1 << 62))
        attempt = self._attempts.get(number)
        if attempt is None:
            raise ControlError(404, "No such attempt", found=number)
        text = plain_lines(attempt.output.decode("utf-8", "replace"))
        found = re.findall(rf"{re.escape(asked.parameters['run'])}@\d+", text)
        told: dict[str, Any] = {
            "code": attempt.code,
            "output": text[-_OUTPUT:],
            "run": found[0] if found else None,
        }
        return reply_json(told)


def find_texts(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Give what may be edited at a step as it is shown: its answer, and the system prompt that it was asked with."""
    if exchange.response is None:
        return
    if exchange.response.spilled is None and exchange.websocket is None:
        with contextlib.suppress(ValueError):
            yield "answer", read_plain_answer(exchange).decode("utf-8")
    is_call = exchange.request_class is RequestClass.INFERENCE
    if is_call and exchange.request.spilled is None:
        context = read_context(exchange.request, exchange.seq)
        if context is not None and context.system:
            yield "system", context.system


def _read_edit(asked: Asked) -> tuple[int, str, str]:
    """Read what is to be run: where, and with what.

    Raises: ControlError.
    """
    body = asked.body
    given = [name for name in ("answer", "system") if name in body]
    unknown = set(body) - {"at", "answer", "system"}
    at = body.get("at")
    if unknown or len(given) != 1 or type(at) is not int or not 0 < at < 1 << 40:
        raise ControlError(
            422,
            "The body says something else",
            expected='{"at": SEQ, "answer": "..."} or {"at": SEQ, "system": "..."}',
            found=", ".join(sorted(map(str, body)))[:100],
        )
    text = body[given[0]]
    if not isinstance(text, str) or len(text) > _MOST:
        raise ControlError(
            422,
            "The body says something else",
            expected=f"{given[0]}: a text of at most {_MOST} characters",
        )
    return at, text, given[0]


def _follow(attempt: Attempt) -> None:
    """Take what a command prints, until it ends."""
    assert attempt.process.stdout is not None
    while data := attempt.process.stdout.read1(4096):  # type: ignore[attr-defined]
        attempt.output += data
        if len(attempt.output) > 4 * _OUTPUT:
            del attempt.output[: 2 * _OUTPUT]
    attempt.code = attempt.process.wait()
