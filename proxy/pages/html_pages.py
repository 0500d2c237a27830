"""The pages: each is rendered whole, so that it can be read before any of its script has run, and its parts can be asked for again."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ...store import RunInfo, StoreError
from ...tape.exchange import Exchange
from ...tape.records.codec import BadRecord
from ...timeline.destinations.destinations import Destinations
from ...timeline.destinations.render import destination_json
from ...web.render import render
from ...web.views.cause_view import view_cause
from ...web.views.context_view import view_context
from ...web.views.exchange_view import view_exchange
from ...web.views.run_facts import is_quick, run_row
from ...web.views.run_index import Mark, find_unsent, first_effects, tell_results
from ...web.views.run_page_sections import (
    find_role_of,
    view_cache,
    view_divergence,
    view_files,
    view_receipt,
)
from ...web.views.safe_text import safe_block, safe_short, safe_word
from ..control.http.error_body import ControlError
from ..looking_back.step_and_time_arguments import StepName
from .fetch_archived_runs import Fetches
from .fleet_data import IN, Comparisons, table_rows
from .gates import Gates, view_gate
from .request_and_reply import Asked, Reply, read_number, read_word
from .run_again import RunAgain, find_edits
from .run_data import (
    find_exchange,
    find_origin,
    find_path,
    last_seq,
    read_body,
    read_step,
    window_of_rows,
)
from .sessions import Rights
from .store_reader import Library, OpenRun

_WINDOW = 60
"""Lines of a list that are in a page as it comes."""
_EFFECTS = 50
_TOLD = 8
"""Notes of one step."""
_RAW = 16_384
_INLINE = 48_000
"""Characters of a text to be edited that is in a page; a longer one comes once somebody wants to edit it."""
PARTS = ("step", "cause", "lines", "effects", "receipt", "cache", "files", "summary", "raw")


_NOWHERE: Mapping[str, Any] = {
    "step": None,
    "view": None,
    "again": [],
    "not_again": [],
    "may_run": False,
    "shown": "readable",
    "raw": None,
    "context": None,
    "no_context": "",
    "cause": None,
    "step_command": "",
}
"""What a page shows at no step: all that `_at_step` reads of one."""


class Pages:
    """Renders pages. Methods block."""

    def __init__(
        self, library: Library, comparisons: Comparisons, again: RunAgain, fetches: Fetches
    ) -> None:
        self._library = library
        self._comparisons = comparisons
        self._again = again
        self._fetches = fetches

    def home(self, _: Asked) -> Reply:
        """Lead to the runs."""
        return Reply(b"", 303, headers={"location": "/runs"})

    def runs(self, asked: Asked) -> Reply:
        """Give the page of all runs."""
        version = self._library.find_version_of_all()
        table = table_rows(self._library, asked)
        query = {name: asked.query.get(name, "") for name in ("q", "in", "tree")}
        return _page("runs", asked, table=table, query=query, words=IN, version=version)

    def runs_part(self, asked: Asked) -> Reply:
        """Give a window of the rows of the table of runs."""
        table = table_rows(self._library, asked)
        return _page("runs_rows", asked, table=table, query=dict(asked.query))

    def run(self, asked: Asked) -> Reply:
        """Give the page of a run, at a step."""
        fetching = self._fetch(asked, asked.parameters["run"])
        if fetching is not None:
            return fetching
        run = self._library.open_run(asked.parameters["run"])
        index = run.index
        info = self._library.store.runs.get(index.info.id)
        self._library.find_facts(info)
        # What is read from here on is as new as this, or newer.
        revision, version = index.revision, self._library.find_version(info)
        _read_view(asked)
        name = _read_name(asked, run)
        values = self._at_step(asked, run, name) if name is not None else dict(_NOWHERE)
        position = index.position_of(name.seq) if name is not None else 0
        if position is None and name is not None:  # as in most runs, until its log is read
            position = name.seq - 1
        begin = max(0, (position or 0) - _WINDOW // 2)
        window = window_of_rows(run, begin, _WINDOW)
        return _page(
            "run",
            asked,
            run=info.id,
            window=window,
            begin=begin,
            revision=revision,
            version=version,
            position=(position or 0) + 1,
            quick=is_quick(info),
            can_rule=Rights.RULE in asked.rights,
            can_run=Rights.RUN in asked.rights,
            **self._summary(run, info),
            **values,
        )

    def run_part(self, asked: Asked) -> Reply:
        """Give a part of the page of a run."""
        part = asked.parameters["part"]
        if part not in PARTS:
            raise ControlError(
                404, "There is nothing here", expected=", ".join(PARTS), found=part[:100]
            )
        run = self._library.open_run(asked.parameters["run"])
        info, store = run.index.info, self._library.store
        values: dict[str, Any] = {"run": info.id}
        if part == "step":
            name = _read_name(asked, run)
            values |= self._at_step(asked, run, name) if name is not None else _NOWHERE
            values["can_run"] = Rights.RUN in asked.rights
        elif part == "cause":
            name = _read_name(asked, run)
            if name is None:
                raise ControlError(404, "The run has no step")
            values["cause"] = self._cause(asked, run, name)
        elif part == "lines":
            begin = read_number(asked.query, "from", 1, 1, 1 << 40)
            limit = read_number(asked.query, "limit", _WINDOW, 1, 200)
            values |= {"window": window_of_rows(run, begin - 1, limit), "position": 0}
        elif part == "receipt":
            values["receipt"] = view_receipt(store, info)
        elif part == "cache":
            values["calls"] = view_cache(store, info)
        elif part == "files":
            values["files"] = view_files(store, info)
        elif part in ("summary", "effects"):
            values |= self._summary(run, store.runs.get(info.id))
        else:
            values |= self._raw(asked, run)
        return _page(f"part_{part}", asked, **values)

    def _summary(self, run: OpenRun, info: RunInfo) -> dict[str, Any]:
        store, index = self._library.store, run.index
        facts = self._library.find_facts(info)
        with index.lock:
            effects = first_effects(index, _EFFECTS)
            results = tell_results(index, {seq for seq, _, _ in effects})
            more = max(0, len(index.effects) - len(effects))
            lanes = [
                {
                    "number": one.number,
                    "name": safe_short(one.name, 100),
                    "parent": one.parent,
                    "calls": one.calls,
                    "tokens": one.input_tokens + one.output_tokens,
                    "models": safe_short(", ".join(one.models), 100),
                }
                for one in index.reader.lanes[:64]
            ]
            programs = [
                (one.kind.value, safe_short(one.name, 100), first)
                for one, first in index.reader.versions.all[:40]
            ]
        row = run_row(store, info, facts, max(info.sealed_ns, index.ended_ns, info.created_ns))
        row["role"] = find_role_of(store, info)
        return {
            "row": row,
            "facts": facts,
            "told": [safe_short(one, 300) for one in index.told.get(-1, ())[:_TOLD]],
            "effects": [
                {
                    "seq": seq,
                    "what": safe_short(name, 160),
                    "note": self._note(run, seq) if duplicate else "",
                    "unsent": find_unsent(index, seq),
                    "result": safe_short(results.get(seq, ""), 240),
                }
                for seq, name, duplicate in effects
            ],
            "more_effects": more,
            "lanes": lanes,
            "programs": programs,
            "command": f"playhead show {safe_word(info.id)}",
        }

    def _note(self, run: OpenRun, seq: int) -> str:
        """Say which effect one may repeat."""
        exchange = run.exchanges.find(seq)
        repeat = exchange.repeat if exchange is not None else None
        return f"possible duplicate of {repeat.of}" if repeat is not None else "possible duplicate"

    # ---- one step ------------------------------------------------------------------------------

    def _at_step(self, asked: Asked, run: OpenRun, name: StepName) -> dict[str, Any]:
        """Read what a page shows of a step."""
        library, index = self._library, run.index
        with index.lock:
            position = index.position_of(name.seq)
            is_known = position is not None and not name.part
        try:
            whose, stored, exchange = find_exchange(library, run, name)
        except ControlError:
            if not is_known:
                raise
            # The log alone has it: it was answered from nowhere, or is under way.
            return self._step_of_log(run, name)
        messages = None
        if exchange.websocket is not None:
            messages = list(islice(library.store.messages.all(whose, stored.seq), 301))
        view = view_exchange(exchange, messages)
        shared = self._step_values(run, name, exchange.started_ns)
        parts = len(run.exchanges.asked(stored)) if stored.websocket is not None else 0
        shared["parts"] = range(1, parts + 1)
        context, why = self._context(asked, run, name, is_call=_is_call(view.exchange))
        shown = _read_view(asked)
        again, not_again = self._edits(run, exchange, name)
        return {
            "step": shared,
            "view": view,
            "again": again,
            "not_again": not_again,
            "may_run": bool(self._again.command),
            "shown": shown,
            "raw": self._raw(asked, run)["raw"] if shown == "raw" else None,
            "context": context,
            "no_context": why,
            "cause": self._cause(asked, run, name) if "path" in asked.query else None,
            "step_command": f"playhead show {safe_word(index.info.id)} {_step_name(name)}",
        }

    def _step_of_log(self, run: OpenRun, name: StepName) -> dict[str, Any]:
        """Read what a page shows of a step that has no exchange."""
        command = f"playhead show {safe_word(run.index.info.id)}"
        shared = self._step_values(run, name, 0)
        return {**_NOWHERE, "step": shared, "step_command": command}

    def _step_values(self, run: OpenRun, name: StepName, started_ns: int) -> dict[str, Any]:
        """Read what the index of a run has of a step."""
        index = run.index
        with index.lock:
            position = index.position_of(name.seq)
            steps = index.pages.get(position) if position is not None else []
            marks = index.marks[position] if position is not None else 0
            kind = index.kind_of(position) if position is not None else ""
            window = window_of_rows(run, position, 1) if position is not None else {"rows": []}
            told = index.told.get(position, [])[:_TOLD] if position is not None else []
            diverged = index.divergences.get(position, []) if position is not None else []
            before = index.before_effect(name.seq) if marks & Mark.EFFECT else None
        return {
            "seq": name.seq,
            "run": index.info.id,
            "name": _step_name(name),
            "kind": kind,
            "row": window["rows"][0] if window["rows"] else None,
            "parts": range(0),
            "effect": bool(marks & Mark.EFFECT),
            "before": before,
            "edges": _edges(steps),
            "followers": self._followers(run, name.seq),
            "duplicate": bool(marks & Mark.DUPLICATE),
            "started_ns": started_ns,
            "told": [safe_short(one, 300) for one in told],
            "divergences": [view_divergence(one) for one in diverged[:_TOLD]],
        }

    def _context(
        self, asked: Asked, run: OpenRun, name: StepName, *, is_call: bool
    ) -> tuple[Any, str]:
        begin = None
        if "context_from" in asked.query:
            begin = read_number(asked.query, "context_from", 0, 0, 1 << 40)
        try:
            return view_context(run.exchanges, *name, begin=begin), ""
        except (StoreError, BadRecord) as error:
            return None, safe_short(str(error), 300)

    def _edits(
        self, run: OpenRun, exchange: Exchange, name: StepName
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Give what may be edited at a step before the command is run again, and why what is not there cannot be."""
        info = run.index.info
        if not info.is_tape:
            return [], ["Only a recording can be left at a step, and this run is none."]
        if name.part:
            return [], ["A WebSocket can be left at none of its model calls."]
        edits, why = [], []
        for one in find_edits(exchange):
            command = self._again.words(info.id, name.seq, one.what)
            if one.text is None:
                why.append(f"Not here: {one.why}. With a file EDITED: {safe_short(command, 600)}")
                continue
            title = {"answer": "Answer", "system": "System prompt"}[one.what]
            is_long = len(one.text) > _INLINE
            edits.append(
                {
                    "what": one.what,
                    "title": title,
                    "text": "" if is_long else one.text,
                    "is_long": is_long,
                    "command": command,
                }
            )
        return edits, why

    def _followers(self, run: OpenRun, seq: int) -> list[dict[str, Any]]:
        """Find what followed from a step, among what came soon behind it."""
        index = run.index
        found: list[dict[str, Any]] = []
        position = index.position_of(seq)
        if position is None:
            return []
        for at in range(position + 1, min(position + 64, index.stepped)):
            for step in index.pages.get(at):
                for edge in step["edges"]:
                    if edge["from"] == seq and len(found) < 20:
                        found.append(
                            {**edge, "rule": safe_short(edge["rule"]), "kind": index.kind_of(at)}
                        )
        return _once(found)

    def _cause(self, asked: Asked, run: OpenRun, name: StepName) -> dict[str, Any]:
        """Find where a value came from."""
        path = find_path(asked)
        return view_cause(find_origin(run, name, path, asked), run.index.info.id)

    def _raw(self, asked: Asked, run: OpenRun) -> dict[str, Any]:
        """Read the bytes of a request or an answer."""
        name = _read_name(asked, run)
        if name is None:
            raise ControlError(404, "The run has no step")
        _, _, exchange = find_exchange(self._library, run, name)
        sides = []
        for side, message in (("request", exchange.request), ("answer", exchange.response)):
            if message is None:
                continue
            begin = read_number(asked.query, f"{side}_from", 0, 0, 1 << 62)
            data, total = read_body(self._library, exchange, side, begin, _RAW)
            is_request = side == "request"
            if is_request:
                request = exchange.request
                head = f"{request.method} {request.target} {request.http_version}"
            else:
                assert exchange.response is not None
                reason = exchange.response.reason.decode("latin-1")
                head = f"{exchange.response.http_version} {exchange.response.status} {reason}"
            fields = "\n".join(
                f"{one.decode('latin-1')}: {value.decode('latin-1')}"
                for one, value in message.headers[:200]
            )
            sides.append(
                {
                    "side": side,
                    "head": safe_block(f"{head}\n{fields}"[:40_000]),
                    "text": _bytes_text(data),
                    "begin": begin,
                    "end": begin + len(data),
                    "total": total,
                }
            )
        return {"raw": sides, "step": {"name": _step_name(name), "seq": name.seq}}

    # ---- other pages ---------------------------------------------------------------------------

    def _fetch(self, asked: Asked, *names: str) -> Reply | None:
        """Have the first of some runs fetched that is in the archive alone; give the page that waits for it."""
        for name in names:
            info = self._library.store.runs.get(name)
            if info.is_only_in_archive:
                self._fetches.begin(info)
                return _page("fetching", asked, run=info.id, name=safe_short(info.id, 120))
        return None

    def diff(self, asked: Asked) -> Reply:
        """Give the page of a comparison."""
        first, second = asked.parameters["first"], asked.parameters["second"]
        fetching = self._fetch(asked, first, second)
        if fetching is not None:
            return fetching
        view = self._comparisons.find(first, second)
        rows, total = view.rows(0, 200, everything=read_word(asked.query, "all", ("0", "1")) == "1")
        return _page(
            "diff", asked, first=first, second=second, view=view, rows=rows, total=total, begin=0
        )

    def diff_part(self, asked: Asked) -> Reply:
        """Give a window of the rows of a comparison."""
        first, second = asked.parameters["first"], asked.parameters["second"]
        view = self._comparisons.find(first, second)
        begin = read_number(asked.query, "from", 0, 0, 1 << 40)
        rows, total = view.rows(
            begin, 200, everything=read_word(asked.query, "all", ("0", "1")) == "1"
        )
        return _page(
            "diff_rows", asked, first=first, second=second, rows=rows, total=total, begin=begin
        )

    def gates(self, asked: Asked, gates: Gates) -> Reply:
        """Give the page on which to rule."""
        return _page("gates", asked, **_gates_values(asked, gates))

    def gates_part(self, asked: Asked, gates: Gates) -> Reply:
        """Give what the page of gates shows now."""
        return _page("part_gates", asked, **_gates_values(asked, gates))

    def destinations(self, asked: Asked) -> Reply:
        """Give the hosts that agents send to."""
        return _page("destinations", asked, rows=_destinations(self._library))


def _gates_values(asked: Asked, gates: Gates) -> dict[str, Any]:
    found = gates.find_held()
    can_rule = Rights.RULE in asked.rights
    return {
        "held_gates": [view_gate(one) for one in gates.find_whole(found.gates[:100])],
        "held": found.held + len(found.breaks),
        "more": max(0, found.held - 100),
        "silent": list(found.silent),
        "rulings": gates.find_rulings(),
        "open_runs": gates.find_open(found.requests),
        "breaks": [gates.view_break(one) for one in found.breaks[:100]],
        "at_breaks": len(found.breaks),
        "can_rule": can_rule,
        "can_run": Rights.RUN in asked.rights,
    }


def _destinations(library: Library) -> list[dict[str, Any]]:
    destinations = Destinations()
    for run in library.store.runs.all()[-500:]:
        if not run.is_only_in_archive:
            destinations.add(library.store, run)
    return [destination_json(one) for one in destinations.all()]


def _page(template: str, asked: Asked, /, **values: Any) -> Reply:
    values.setdefault("held", 0)
    text = render(template, path=asked.path, asked=asked.query, **values)
    return Reply(text.encode("utf-8", "backslashreplace"))


def _read_name(asked: Asked, run: OpenRun) -> StepName | None:
    """Read which step is meant: without one the last; None where there is none."""
    text = asked.query.get("seq")
    if text is not None:
        return read_step(text, "seq")
    last = last_seq(run)
    return StepName(last) if last else None


def _read_view(asked: Asked) -> str:
    return read_word(asked.query, "view", ("readable", "raw"))


def _step_name(name: StepName) -> str:
    return f"{name.seq}.{name.part}" if name.part else str(name.seq)


def _is_call(exchange: Any) -> bool:
    return bool(exchange.request_class.value == "inference")


def _edges(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [{**edge, "rule": safe_short(edge["rule"])} for step in steps for edge in step["edges"]]
    return _once(found)[:40]


def _once(edges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(one["from"], one["to"], one["rule"]): one for one in edges}.values())


def _bytes_text(data: bytes) -> str:
    return safe_block(data.decode("utf-8", "backslashreplace"))
