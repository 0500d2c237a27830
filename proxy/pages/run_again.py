"""Run the command that was given at the start as a branch: with another answer, or another system prompt, at one step.

The command is that of `--allow-run -- COMMAND`, and no request can name another one. What was edited goes to `playhead branch` as the file
that a person would give it, whose words are shown before it is run; but as one without a name, which ends with the two processes: the store
may be encrypted.
"""

import contextlib
import json
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
from typing import IO, Any, NamedTuple

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
from ..control.http.route import BODY_BYTES
from .request_and_reply import Asked, Reply, read_number, read_word, reply_json
from .run_data import read_step
from .store_reader import Library

REASON = "edited on the page"
MOST_EDITED = BODY_BYTES - 4096
"""Bytes of a text that is given to be edited, as JSON: what comes back has to be one body of a request."""
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

    def close(self) -> None:
        """End what runs."""
        for attempt in self._attempts.values():
            if attempt.code is None:
                with contextlib.suppress(ProcessLookupError):
                    attempt.process.terminate()

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
            with _open_nameless(what) as file:
                file.write(data)
                file.seek(0)
                words = self._words(run, at, what, f"/dev/fd/{file.fileno()}")
                process = subprocess.Popen(
                    [sys.executable, "-m", "playhead.proxy.cli", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                    pass_fds=[file.fileno()],
                )
            attempt = Attempt(process, self.words(run, at, what))
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
        shown = find_text(exchange, what)
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

    def get_text(self, asked: Asked) -> Reply:
        """Give what may be edited at a step, as it is shown."""
        store, number = self._library.store, read_step(asked.parameters["seq"], "the step")
        what = read_word(asked.query, "what", ("answer", "system"))
        exchange = store.exchanges.find(store.runs.get(asked.parameters["run"]), number.seq)
        edits = [] if exchange is None or number.part else list(find_edits(exchange))
        edit = next((one for one in edits if one.what == what), None)
        if edit is None or edit.text is None:
            why = f": {edit.why}" if edit is not None else ""
            raise ControlError(404, f"There is no {what} here that can be edited{why}")
        return reply_json({"text": edit.text})

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


class Edit(NamedTuple):
    """What may be edited at a step."""

    what: str
    text: str | None
    """As it is shown; None where it cannot be edited in a text box."""
    why: str = ""
    """Then the reason, as the end of a sentence."""


def find_edits(exchange: Exchange) -> Iterator[Edit]:
    """Give what may be edited at a step as it is shown: its answer, and the system prompt that it was asked with."""
    yield _find_answer(exchange)
    is_call = exchange.request_class is RequestClass.INFERENCE
    if is_call and exchange.response is not None:
        if exchange.request.spilled is not None:
            size = exchange.request.spilled.size
            yield Edit("system", None, f"the request has {size} bytes, too many to be edited here")
            return
        context = read_context(exchange.request, exchange.seq)
        if context is not None and context.system:
            yield _bound("system", context.system, "the system prompt")


def _find_answer(exchange: Exchange) -> Edit:
    if exchange.response is None:
        return Edit("answer", None, "no answer was recorded")
    if exchange.websocket is not None:
        return Edit("answer", None, "a WebSocket has messages, and no answer to be edited")
    if exchange.response.spilled is not None:
        size = exchange.response.spilled.size
        return Edit("answer", None, f"the answer has {size} bytes, too many to be edited here")
    try:
        text = read_plain_answer(exchange).decode("utf-8")
    except ValueError:
        return Edit("answer", None, "the answer is no text in UTF-8")
    return _bound("answer", text, "the answer")


def _bound(what: str, text: str, name: str) -> Edit:
    try:
        size = len(json.dumps(text, ensure_ascii=False).encode("utf-8"))
    except UnicodeEncodeError:
        return Edit(what, None, f"{name} has half a surrogate pair, which a page cannot show")
    if size > MOST_EDITED:
        return Edit(
            what, None, f"{name} has {size} bytes as JSON, and the page takes {MOST_EDITED}"
        )
    return Edit(what, text)


def find_text(exchange: Exchange, what: str) -> str | None:
    """Give a text as it is shown to be edited; None where it cannot be."""
    return next((one.text for one in find_edits(exchange) if one.what == what), None)


def _open_nameless(what: str) -> IO[bytes]:
    """Open a file without a name: in memory, where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create(what), "w+b")
    return tempfile.TemporaryFile()


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
    if not isinstance(text, str):
        raise ControlError(422, "The body says something else", expected=f"{given[0]}: a text")
    return at, text, given[0]


def _follow(attempt: Attempt) -> None:
    """Take what a command prints, until it ends."""
    assert attempt.process.stdout is not None
    while data := attempt.process.stdout.read1(4096):  # type: ignore[attr-defined]
        attempt.output += data
        if len(attempt.output) > 4 * _OUTPUT:
            del attempt.output[: 2 * _OUTPUT]
    attempt.code = attempt.process.wait()
