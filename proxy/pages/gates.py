"""Gates of all processes of a store: what is held, past rulings, open runs with their limits; and rulings passed on to the process."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from ... import PlayheadError
from ...store import RunInfo, RunStatus
from ...tape.edits.edit_answer import restore_answer
from ...tape.exchange import Exchange
from ...tape.headers.shipped_lists import KEYS_OF_EFFECTS
from ...tape.policy.approval_decision import Ruling
from ...tape.records.events import EventKind
from ...tape.shell_words import shell_word
from ...timeline import build
from ...timeline.reading.exact_body_values import read_form, read_json
from ...timeline.receipts.interventions.limits import LimitsAccount
from ...timeline.receipts.render_text import show_text
from ...web.views.run_page_sections import view_effects
from ...web.views.safe_text import BLOCK, Shown, safe_block, safe_short, show_block
from ...web.views.value_tree import Line, list_pairs, list_value
from ..control.address import Address, find_addresses
from ..control.ask_processes import (
    Held,
    command_holder,
    find_awake,
    find_gates,
    list_held,
    refuse_silent,
)
from ..control.client import ask
from ..control.handlers.breakpoints import ANSWER
from ..control.handlers.gates import FIELDS, VALUE
from ..control.http.error_body import ControlError
from ..errors import NotAnswered
from .request_and_reply import Asked, Reply, reply_json
from .run_again import Edit, find_edits, find_text
from .run_data import read_body
from .store_reader import Library, newest_first

_RULED = 100
_RUNS = 40
"""Runs whose past rulings are listed, the newest."""
_OPEN = 20
_WHOLE = 20
"""Held requests whose bodies are asked for beyond what a list has of them."""
_REASON = 500
_WHY = {
    Ruling.EXPIRED.value: "nobody ruled before its deadline",
    Ruling.LEFT.value: "its client left; nothing was sent",
    Ruling.ENDED.value: "its run ended; nothing was sent",
}
"""Of what nobody ruled on."""


class Gates:
    """What is held, and what becomes of it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._ruled: dict[int, tuple[object, list[dict[str, Any]]]] = {}
        self._others: dict[str, dict[str, Any]] = {}
        """By the name of a gate, the ruling that was there before another one here."""

    # ---- reading -------------------------------------------------------------------------------

    def list_gates(self, _: Asked) -> Reply:
        """Give what all processes of the store hold, as the control API shows it, and past rulings."""
        found = self.find_held()
        return reply_json(
            {
                "gates": found.gates[:100],
                "held": found.held,
                "silent": list(found.silent),
                "rulings": self.find_rulings()[:100],
            }
        )

    def list_breaks(self, _: Asked) -> Reply:
        """Give what is held at breakpoints, as the control API shows it."""
        found = self.find_held()
        return reply_json({"breaks": found.breaks[:20], "silent": list(found.silent)})

    def find_held(self) -> Held:
        """Give what is held, oldest first, each with the process that holds it; and the processes that did not answer."""
        return list_held(self._library.config)

    def find_whole(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give held requests with as much of their bodies as is ever shown, where a list has less."""
        cut = [row for row in rows[:_WHOLE] if not row["whole"]]
        pids = {row["pid"] for row in cut}
        holding = [one for one in self._addresses() if one.pid in pids] if cut else []
        whole = find_gates(self._library.config, holding, [row["id"] for row in cut])
        return [whole.get(row["id"], row) for row in rows]

    def find_rulings(self) -> list[dict[str, Any]]:
        """Give past rulings of the newest runs, the newest first."""
        found: list[dict[str, Any]] = []
        for run in islice(newest_first(self._library.store), _RUNS):
            if run.is_only_in_archive:
                continue
            state = run.status, run.sealed_ns
            known = self._ruled.get(run.number)
            if known is None or known[0] != state or run.status is RunStatus.OPEN:
                with contextlib.suppress(PlayheadError):
                    known = self._ruled[run.number] = state, list(self._read_rulings(run))
            found += known[1] if known is not None else []
        return sorted(found, key=lambda row: -int(row["at_ns"]))[:_RULED]

    def _read_rulings(self, run: RunInfo) -> Iterator[dict[str, Any]]:
        store = self._library.store
        held = {event.seq: event for event in store.events.of_kind(run, EventKind.HELD)}
        if not held:
            return
        for event in store.events.of_kind(run, EventKind.RULED):
            of = held.pop(event.seq, None)
            yield _ruling(
                run, event.seq, of.data if of is not None else {}, event.data, event.at_ns
            )
        if run.status is RunStatus.OPEN:
            return
        # What was approved is sent only once the log has the approval, so what has none was not.
        why = "its run" if run.status is RunStatus.SEALED else "its proxy"
        ended = {"ruling": Ruling.ENDED.value, "reason": f"{why} ended; nothing was sent"}
        for seq, of in held.items():
            yield _ruling(run, seq, of.data, ended, max(run.sealed_ns, of.at_ns))

    def find_open(self, arrived: Mapping[str, int]) -> list[dict[str, Any]]:
        """Give the open runs with their effects and limits.

        arrived: how many requests of them have arrived, as their processes say.
        """
        library = self._library
        found: list[dict[str, Any]] = []
        for run in islice(newest_first(library.store), 500):
            if run.status is not RunStatus.OPEN or len(found) == _OPEN:
                continue
            row: dict[str, Any] = {
                "run": run.id,
                "mode": run.mode,
                "requests": run.exchanges,
                "held": 0,
                "effects": [],
                "limits": [],
                "stopped": None,
            }
            if run.exchanges <= 5000:
                with contextlib.suppress(PlayheadError):
                    parts = build(library.store, run).parts
                    row["effects"] = view_effects(library.store, run, 20)
                    row["held"] = parts.gates.waiting
                    # Those that are held have arrived, and have no exchange yet.
                    row["requests"] = max(run.exchanges, *parts.gates.seqs, 0)
                    row["limits"] = _limits(parts.limits, parts.gates.waiting)
                    row["stopped"] = parts.limits.stopped
            # What the tape answers, and what is held, is no exchange of the run.
            row["requests"] = max(row["requests"], arrived.get(run.id, 0))
            found.append(row)
        return found

    # ---- ruling --------------------------------------------------------------------------------

    def approve(self, asked: Asked) -> Reply:
        """Let a held request go."""
        return self._rule(asked, "approve")

    def deny(self, asked: Asked) -> Reply:
        """Refuse a held request."""
        return self._rule(asked, "deny")

    def _rule(self, asked: Asked, action: str) -> Reply:
        name = asked.parameters["id"]
        body = {"via": "page", "reason": _read_reason(asked)}
        digest = asked.body.get("digest")
        if digest is not None:
            if not isinstance(digest, str) or len(digest) > 64:
                raise ControlError(
                    422,
                    "The body says something else",
                    expected="digest: of the request that was looked at",
                )
            body["digest"] = digest
        try:
            return self._command_holder(
                f"/v1/gates/{quote(name, safe='')}/{action}",
                body,
                name,
                lambda _, error: "held no more" in str(error),
            )
        except (NotAnswered, ControlError):
            before = next((one for one in self.find_rulings() if one["id"] == name), None)
            if before is None:
                raise
            raise ControlError(
                409,
                f"{before['said']} before",
                expected="a request that is held",
                found=name[:100],
                hint=before["reason"] or "the first ruling counts",
            ) from None

    def _command_holder(
        self,
        path: str,
        body: Mapping[str, Any],
        name: str,
        knows: Callable[[Address, NotAnswered], bool],
    ) -> Reply:
        """Have the process that holds a request do something with it. Raises: NotAnswered, ControlError."""
        config = self._library.config
        told = command_holder(config, find_awake(config, self._addresses()), path, body, knows)
        if told is None:
            raise ControlError(409, "Nothing is held by this name", found=name[:100])
        return reply_json(told)

    def stop(self, asked: Asked) -> Reply:
        """Stop an open run: whatever it asks is refused from then on."""
        run = self._library.store.runs.get(asked.parameters["run"])
        if run.status is not RunStatus.OPEN or run.owner is None:
            raise ControlError(
                409, f"Run {run.id!r} is {run.status.value} already", expected="an open run"
            )
        address = next((one for one in self._addresses() if one.pid == run.owner.pid), None)
        if address is None:
            raise ControlError(
                409,
                f"Process {run.owner.pid}, which writes the run, has no control API",
                hint=f"playhead seal {shell_word(run.id)} ends it",
            )
        _, silent = find_awake(self._library.config, [address])
        if silent:
            raise refuse_silent(silent)
        path = f"/v1/runs/{quote(run.id, safe='')}/stop"
        body = {"reason": _read_reason(asked)}
        return reply_json(ask(self._library.config, address, "POST", path, body))

    def of_break(self, word: str) -> Callable[[Asked], Reply]:
        """Give what passes a command on to where a request is held at a breakpoint."""

        def decide(asked: Asked) -> Reply:
            name = asked.parameters["id"]
            body = {} if word != "answer" else {"answer": self._read_answer(asked)}
            return self._command_holder(
                f"/v1/breaks/{quote(name, safe='')}/{word}",
                body,
                name,
                lambda _, error: "nothing is held" not in str(error),
            )

        return decide

    def _read_answer(self, asked: Asked) -> str:
        """Give the answer as it is to be sent.

        It is the very text that was given; `edited` says that it is the recorded answer, edited in a text box. Then what was not edited is as
        it was recorded, also where a text box cannot hold it.
        Raises: ControlError.
        """
        answer = asked.body.get("answer")
        unknown = asked.body.keys() - {"answer", "edited"}
        if (
            not isinstance(answer, str)
            or type(asked.body.get("edited", False)) is not bool
            or unknown
        ):
            raise ControlError(
                422, "The body says something else", expected="answer: the body as a text"
            )
        if not asked.body.get("edited"):
            return answer
        recorded = self._find_held_at(asked.parameters["id"])
        if recorded is None:
            raise ControlError(409, "There is no recorded answer that was edited")
        with contextlib.suppress(ValueError):
            return restore_answer(recorded, answer).decode("utf-8")
        return answer

    def get_recorded(self, asked: Asked) -> Reply:
        """Give the recorded answer to what is held at a breakpoint, as it is edited."""
        name = asked.parameters["id"]
        recorded = self._find_held_at(name)
        edit = _find_edit(recorded) if recorded is not None else None
        if edit is None or edit.text is None:
            why = f": {edit.why}" if edit is not None else ""
            raise ControlError(
                404, f"There is no recorded answer that can be edited{why}", found=name[:100]
            )
        return reply_json({"answer": edit.text})

    def _find_held_at(self, name: str) -> Exchange | None:
        row = next((one for one in self.find_held().breaks if one["id"] == name), None)
        return self.find_recorded(row) if row is not None else None

    def find_recorded(self, row: Mapping[str, Any]) -> Exchange | None:
        """Give the exchange of the tape that would answer what is held at a breakpoint."""
        store = self._library.store
        if row["tape_seq"] is None:
            return None
        with contextlib.suppress(PlayheadError):
            tape = store.runs.find_tape(store.runs.get(row["id"].rpartition(":")[0]))
            return store.exchanges.find(tape, row["tape_seq"]) if tape is not None else None
        return None

    def view_break(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Give what is held at a breakpoint for a page: what it asks, and the recorded answer, which can be edited where it is a text."""
        recorded = self.find_recorded(row)
        response = recorded.response if recorded is not None else None
        text = find_text(recorded, "answer") if recorded is not None else None
        edit = _find_edit(recorded) if recorded is not None else None
        shown = None
        if recorded is not None and response is not None:
            if text is None:  # it is large, or no text
                data, total = read_body(self._library, recorded, "answer", 0, BLOCK)
                shown = Shown(safe_block(show_text(data)), total - len(data))
            else:
                shown = show_block(text)
        return {
            **row,
            "what": safe_short(f"{row['method']} {row['url']}", 600),
            "why": safe_short(row["why"], 120),
            "reason": safe_short(row["reason"], 300),
            "body": safe_block(row["body"][:BLOCK]),
            "status": response.status if response is not None else None,
            "recorded": shown,
            "editable": edit is not None and edit.text is not None,
            "not_editable": edit.why if edit is not None else "",
        }

    def _addresses(self) -> list[Address]:
        return find_addresses(self._library.config.store)


def _find_edit(recorded: Exchange) -> Edit:
    """Give the recorded answer as it is edited at a breakpoint, where the control API bounds it."""
    edit = next(one for one in find_edits(recorded) if one.what == "answer")
    if edit.text is not None and len(edit.text) > ANSWER.most:
        size = len(edit.text)
        return Edit(
            edit.what, None, f"it has {size} characters, and the page takes {ANSWER.most} here"
        )
    return edit


def _read_reason(asked: Asked) -> str:
    reason = asked.body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > _REASON or not reason.isprintable():
        found = ""
        if isinstance(reason, str):
            unseen = next((one for one in reason if not one.isprintable()), "")
            found = ascii(unseen)[1:-1] if unseen else f"{len(reason)} characters"
        raise ControlError(
            422,
            "The reason cannot be kept",
            expected=f"reason: one line of at most {_REASON} visible characters",
            found=found,
            hint="nothing was ruled: write it otherwise",
        )
    return reason


def _ruling(
    run: RunInfo, seq: int, of: Mapping[str, Any], data: Mapping[str, Any], at_ns: int
) -> dict[str, Any]:
    """Give how the waiting of a request ended.

    of, data: as the log has that it was held, and how that ended.
    """
    by = safe_short(data.get("by", ""), 80)
    return {
        "id": f"{run.id}:{seq}",
        "run": run.id,
        "seq": seq,
        "what": safe_short(f"{of.get('method', '')} {of.get('url', '')}", 300),
        "ruling": data["ruling"],
        "by": by,
        "said": f"{data['ruling']} by {by}" if by else data["ruling"],
        "via": data.get("via", ""),
        "reason": safe_short(data.get("reason", "") or _WHY.get(data["ruling"], ""), 200),
        "at_ns": at_ns,
    }


def _limits(account: LimitsAccount, held: int) -> list[str]:
    """Say what was used of each limit, as the receipt does; what is held counts, and leaves only later."""
    if account.row is None:
        return []
    lines = [safe_short(line, 300) for line in account.row.lines()]
    if held:
        lines.insert(1, f"and {held} that {'is' if held == 1 else 'are'} held, as a call each")
    return lines


def view_gate(row: dict[str, Any]) -> dict[str, Any]:
    """Give a held request for a page: its body decoded, its idempotency key, and how long is left."""
    kinds, fields, key = [], [], ""
    for name, value in row["headers"]:
        if name.lower() == "content-type":
            kinds.append(value.partition(";")[0].strip().lower())
        if name.lower().encode() in KEYS_OF_EFFECTS:
            key = safe_short(value, 200)
        cut = f" … cut behind {VALUE} bytes" if len(value) >= VALUE else ""
        fields.append((safe_short(name, 100), safe_short(value, 500) + cut))
    lines, lost = _decode(row, kinds)
    left_s = max(0, round((row["deadline_ns"] - row["now_ns"]) / 1e9))
    return {
        "id": row["id"],
        "run": row["run"],
        "seq": row["seq"],
        "name": safe_short(row["id"], 120),
        "what": safe_short(f"{row['method']} {row['url']}", 2000),
        "reason": safe_short(row["reason"], 400),
        "rule": safe_short(row["rule"], 120),
        "pid": row["pid"],
        "repeats": row["repeats"],
        "digest": row["digest"],
        "fields": fields,
        "more_fields": len(fields) >= FIELDS,
        "key": key,
        "kind": safe_short(" and ".join(kinds), 200) or "no content type",
        "lines": lines,
        "lost": lost,
        "text": safe_block(row["body"]),
        "whole": row["whole"],
        "body_bytes": row["body_bytes"],
        "replaced": [safe_short(one["kind"], 60) for one in row["replaced"]],
        "left_s": left_s,
        "deadline_ns": row["deadline_ns"],
        "all_s": max(1, round((row["deadline_ns"] - row["since_ns"]) / 1e9)),
        "since_ns": row["since_ns"],
    }


def _decode(row: dict[str, Any], kinds: list[str]) -> tuple[list[Line], tuple[str, ...]]:
    """Give the values of a body that is a form or JSON; where they do not say what its bytes do, none, and why."""
    if not row["whole"] or not row["body"]:
        return [], ()
    if len(kinds) > 1:
        return [], ("it has several content types: programs differ in which one they take",)
    # Characters that no page shows are escapes in it, which mean the same in JSON.
    body = row["body"].encode()
    if kinds == ["application/x-www-form-urlencoded"]:
        form = read_form(body)
        return ([], form.lost) if form.lost else (list_pairs(form.value), ())
    tree = read_json(body)
    if tree is None or tree.lost:
        return [], tree.lost if tree is not None else ()
    return list_value(tree.value), ()
