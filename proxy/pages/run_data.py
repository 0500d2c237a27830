"""The data of one run: its summary, steps, strip, moves, and what is at one step."""

import contextlib
from typing import Any

from ...store import LogCorrupt, RunInfo, StoreError
from ...tape.exchange import Exchange
from ...timeline.blame.find_origin import Blame, find_blame
from ...timeline.blame.render import blame_json
from ...timeline.reading.exchange_json import exchange_json
from ...timeline.reading.made_answers import find_made
from ...timeline.receipts.exchange_rows import find_shown
from ...timeline.rules.contract_violations import found_in
from ...web.views.addresses import run_path
from ...web.views.context_view import part_json, view_context
from ...web.views.run_facts import run_json
from ...web.views.run_index import Mark
from ...web.views.scrubber_stops import GO, OF
from ...web.views.step_rows import fold_steps
from ...web.views.timeline_strip import WIDTH, Axis, draw_strip
from ..control.http.error_body import ControlError
from ..looking_back.step_and_time_arguments import StepName, parse_step
from .request_and_reply import Asked, Reply, read_number, read_word, reply_json
from .store_reader import Library, OpenRun

LIMIT = 200
_BODY = 65_536
_MOST_BYTES = 240_000
"""Of a window of steps: fewer are given where they are long."""
_SEQ = (1 << 63) - 1
_DIGITS = 24


def get_run(library: Library, asked: Asked) -> Reply:
    """Give the summary of a run."""
    info = library.store.runs.get(asked.parameters["run"])
    document = run_json(library.store, info, library.find_facts(info))
    if not info.is_only_in_archive:
        run = library.open_run(info.id)
        index = run.index
        document |= {"total": len(index), "read": index.stepped, "complete": index.complete}
    return reply_json(document)


def list_steps(library: Library, asked: Asked) -> Reply:
    """Give a window of steps, as `show --json` has them: of whole exchanges, or the part of one that is too long."""
    run = library.open_run(asked.parameters["run"])
    begin = read_number(asked.query, "from", 0, 0, _SEQ)
    limit = read_number(asked.query, "limit", LIMIT, 1, LIMIT)
    index = run.index
    skip = read_number(asked.query, "skip", 0, 0, _SEQ)
    found: list[dict[str, Any]] = []
    left_out = size = 0
    with index.lock:
        position = index.nearest(begin) if len(index) and begin <= index.seqs[-1] else len(index)
        while position < index.stepped:
            # As `show --json` without --cost: the price of a call is in its line.
            steps = [{**one, "usd": None} for one in index.pages.get(position)][skip:]
            size += _size(steps)
            if len(found) + len(steps) > limit or size > _MOST_BYTES:
                if not found:  # it alone is too long
                    found = _fit(steps[:limit])
                    left_out = len(steps) - len(found)
                break  # whoever goes on at the next seq would miss the rest of an exchange
            found += steps
            position, skip = position + 1, 0
    return reply_json(
        {
            "steps": found,
            "left_out": left_out,
            "total": index.step_count,
            "read": index.stepped,
            "complete": index.complete,
        }
    )


def _fit(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give as many rows as an answer may have bytes; one at least."""
    size = 0
    for number, row in enumerate(rows):
        size += _size([row])
        if size > _MOST_BYTES and number:
            return rows[:number]
    return rows


def _size(rows: list[dict[str, Any]]) -> int:
    """Give the most bytes that rows may have as JSON."""
    return sum(6 * (len(row["text"]) + len(row["name"] or "")) + 700 for row in rows)


def list_rows(library: Library, asked: Asked) -> Reply:
    """Give a window of lines: one an exchange, by position."""
    run = library.open_run(asked.parameters["run"])
    begin = read_number(asked.query, "from", 1, 1, _SEQ)
    limit = read_number(asked.query, "limit", LIMIT, 1, LIMIT)
    return reply_json(window_of_rows(run, begin - 1, limit))


def window_of_rows(run: OpenRun, begin: int, limit: int) -> dict[str, Any]:
    """Give the lines of a list from a position on."""
    index = run.index
    with index.lock:
        axis = Axis(index)
        rows = []
        for position in range(begin, min(begin + limit, len(index))):
            row = fold_steps(index.seqs[position], index.pages.get(position))
            marks = index.marks[position]
            row["position"] = position + 1
            row["kind"] = row["kind"] and index.kind_of(position)
            row["read"] = position < index.stepped
            row["effect"] |= bool(marks & Mark.EFFECT)
            row["failed"] |= bool(marks & Mark.FAILED)
            row["duplicate"] = bool(marks & Mark.DUPLICATE)
            row["diverged"] = bool(marks & Mark.DIVERGED)
            row["open"] = bool(marks & Mark.OPEN)
            row["title"] = row["title"] or index.effects.get(position, "")
            row["kind"] = row["kind"] or index.kind_of(position)
            row["took_us"] = index.took[position]
            row["before"] = index.before_effect(row["seq"]) if row["effect"] else None
            row["at_us"] = index.active[position]
            row["place"] = [round(axis.begin(position), 7), round(axis.end(position), 7)]
            row["moves"] = {of: run.scrubbers.place(of, position) for of in OF[1:]}
            rows.append(row)
        return {
            "rows": rows,
            "total": len(index) if index.logged else max(len(index), last_seq(run)),
            "read": index.stepped,
            "logged": index.logged,
            "complete": index.complete,
        }


def get_strip(library: Library, asked: Asked) -> Reply:
    """Give the timeline in so many bins."""
    run = library.open_run(asked.parameters["run"])
    index = run.index
    width = read_number(asked.query, "width", 1000, 1, WIDTH)
    axis = read_word(asked.query, "axis", ("time", "steps"))
    begin, end = 0.0, 1.0
    with index.lock:
        if "start_ns" in asked.query or "end_ns" in asked.query:
            begin, end = _zoom(run, asked, steps=axis == "steps")
        begin, end = (
            _share(asked, name, default) for name, default in (("begin", begin), ("end", end))
        )
        return reply_json(
            draw_strip(index, width, begin, max(end, begin + 1e-6), steps=axis == "steps")
        )


def get_place(library: Library, asked: Asked) -> Reply:
    """Say which exchange is at a place of the strip."""
    run = library.open_run(asked.parameters["run"])
    index = run.index
    at = _share(asked, "at", 0.0)
    with index.lock:
        if not len(index):
            return reply_json({"seq": None, "position": None})
        position = Axis(index).find(at)
        return reply_json({"seq": index.seqs[position], "position": position + 1})


def _share(asked: Asked, name: str, default: float) -> float:
    text = asked.query.get(name)
    if text is None:
        return default
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 <= value <= 1:
            return value
    raise ControlError(
        400, f"{name} cannot be read", expected=f"{name}: from 0 to 1", found=repr(text)[:100]
    )


def _zoom(run: OpenRun, asked: Asked, *, steps: bool) -> tuple[float, float]:
    """Give the places of two moments of the clock: of the exchanges that began next before them."""
    index, axis = run.index, Axis(run.index, steps=steps)
    places = []
    for name, default in (("start_ns", index.began_ns), ("end_ns", index.ended_ns)):
        at_ns = read_number(asked.query, name, default, 0, 1 << 63)
        active = (at_ns - index.began_ns) / 1000
        for gap in index.gaps:
            if gap.active_us < active:
                active = max(gap.active_us, active - gap.length_us)
        place = axis.begin(index.at_active(active)) if steps else active / axis.whole_us
        places.append(min(1.0, max(0.0, place)))
    return places[0], places[1]


def get_move(library: Library, asked: Asked) -> Reply:
    """Say where a scrubber goes."""
    run = library.open_run(asked.parameters["run"])
    of = read_word(asked.query, "of", OF)
    go = asked.query.get("go", "next")
    if go not in GO and not (go.isascii() and go.isdigit() and 0 < len(go) < 16):
        read_word(asked.query, "go", GO)
    name = read_step(asked.query.get("seq", ""), "seq")
    index = run.index
    run.read_log()
    with index.lock:
        position = index.position_of(name.seq)
        if position is None:
            raise _no_step(run, name)
        found = run.scrubbers.move(of, position, go)
    return reply_json(found or {"seq": None, "position": None, "of_total": 0})


def last_seq(run: OpenRun) -> int:
    """Give the last seq of a run, also before its log was read; 0 where there is none."""
    index = run.index
    info = index.info
    if not index.logged and info.parent is None and info.exchanges:
        return info.exchanges
    return index.seqs[-1] if len(index) else 0


def _no_step(run: OpenRun, name: StepName) -> ControlError:
    run.read_log()
    index = run.index
    seqs, asked = index.seqs, str(name.seq)
    asked = asked if len(asked) <= _DIGITS else f"{asked[:_DIGITS]}…"
    if not len(seqs):
        return ControlError(
            404, f"Run {index.info.id!r} has no step {asked}", expected="it has no step at all"
        )
    at = index.nearest(min(name.seq, 1 << 62))
    nearest = min(seqs[max(0, at - 1) : at + 2], key=lambda one: (abs(one - name.seq), one))
    link = f"{run_path(index.info.id)}?seq={nearest}"
    return ControlError(
        404,
        f"Run {index.info.id!r} has no step {asked}",
        expected=f"{seqs[0]} to {seqs[-1]}",
        found=asked,
        hint=f"the nearest is {nearest}",
        near=((f"Step {nearest}", link),),
    )


def read_step(text: str, what: str) -> StepName:
    """Read SEQ or SEQ.PART.

    Raises: ControlError.
    """
    try:
        return parse_step(text)
    except ValueError as error:
        raise ControlError(
            400,
            f"{what} cannot be read",
            expected=f"{what}: SEQ, as seq=6, or SEQ.PART, as seq=7.2",
            found=repr(text)[:100],
            hint=str(error)[:300],
        ) from None


def find_exchange(
    library: Library, run: OpenRun, name: StepName
) -> tuple[RunInfo, Exchange, Exchange]:
    """Find the exchange at a step: whose it is, itself, and the one that a part of it would have been.

    Raises: StoreError, naming the nearest; LogCorrupt.
    """
    found = find_shown(library.store, run.index.info, name.seq)
    if found is None:
        raise _no_step(run, name)
    whose, exchange = found
    try:
        return whose, exchange, _part_of(run, exchange, name)
    except LogCorrupt:
        raise
    except StoreError as error:
        raise _no_part(run, name, error) from None


def _part_of(run: OpenRun, exchange: Exchange, name: StepName) -> Exchange:
    if exchange.seq != name.seq:  # a tape's, under the seq of the playback
        exchange = run.exchanges.get(name.seq)
    return run.exchanges.get_part(exchange, name.part) if name.part else exchange


def _no_part(run: OpenRun, name: StepName, error: StoreError) -> ControlError:
    """Say that an exchange has no such part."""
    link = f"{run_path(run.index.info.id)}?seq={name.seq}"
    return ControlError(
        404,
        f"Run {run.index.info.id!r} has no step {name.seq}.{name.part}",
        expected=str(error)[:300],
        found=f"{name.seq}.{name.part}",
        near=((f"Step {name.seq}", link),),
    )


def get_step(library: Library, asked: Asked) -> Reply:
    """Give one step without its bodies."""
    run = library.open_run(asked.parameters["run"])
    name = read_step(asked.parameters["seq"], "the step")
    _, _, exchange = find_exchange(library, run, name)
    document = exchange_json(exchange, (), found_in(library.store, run.index.info, name.seq))
    for side in ("request", "response"):
        for key in ("body", "body_base64", "chunks", "secrets"):
            if document[side] is not None:
                document[side].pop(key, None)
    document["request"]["body_bytes"] = exchange.request.body_bytes
    if exchange.response is not None:
        document["response"]["body_bytes"] = exchange.response.body_bytes
        document["response"]["pieces"] = len(exchange.response.chunks)
    document["seq"] = name.seq
    with run.index.lock:
        position = run.index.position_of(name.seq)
        steps = run.index.pages.get(position) if position is not None else []
    document["steps"] = _fit([one for one in steps if not name.part or one["part"] == name.part])
    return reply_json(document)


def get_body(library: Library, asked: Asked) -> Reply:
    """Give bytes of a body."""
    import base64

    run = library.open_run(asked.parameters["run"])
    name = read_step(asked.parameters["seq"], "the step")
    side = read_word(asked.query, "side", ("request", "answer"))
    begin = read_number(asked.query, "from", 0, 0, 1 << 62)
    limit = read_number(asked.query, "limit", _BODY, 1, _BODY)
    _, _, exchange = find_exchange(library, run, name)
    data, total = read_body(library, exchange, side, begin, limit)
    told: dict[str, Any] = {"from": begin, "total": total}
    try:
        told["body"] = data.decode("utf-8")
    except UnicodeDecodeError:
        told["body_base64"] = base64.b64encode(data).decode()
    if "body" in told and len(told["body"]) * 2 > _MOST_BYTES:
        told["body_base64"] = base64.b64encode(told.pop("body").encode()).decode()
    return reply_json(told)


def read_body(
    library: Library, exchange: Exchange, side: str, begin: int, limit: int
) -> tuple[bytes, int]:
    """Read bytes of a body, wherever it lies; give how many it has in all."""
    message = exchange.request if side == "request" else exchange.response
    if message is None:
        return b"", 0
    if message.spilled is None:
        return message.body[begin : begin + limit], len(message.body)
    data, at = bytearray(), 0
    for piece in library.store.bodies.read_file(message.spilled.digest):
        if at + len(piece) > begin:
            data += piece[max(0, begin - at) :]
        at += len(piece)
        if len(data) >= limit:
            break
    return bytes(data[:limit]), message.spilled.size


def list_context(library: Library, asked: Asked) -> Reply:
    """Give a window of the context at a step."""
    run = library.open_run(asked.parameters["run"])
    name = read_step(asked.parameters["seq"], "the step")
    begin = read_number(asked.query, "from", 0, 0, _SEQ)
    limit = read_number(asked.query, "limit", 60, 1, LIMIT)
    view = view_context(run.exchanges, *name, begin=begin, window=limit)
    gone = max(0, begin - view.total)
    parts = [*view.parts, *view.left[gone : gone + limit - len(view.parts)]]
    return reply_json(
        {
            "seq": view.state.call.seq,
            "part": view.state.call.part or None,
            "since": view.since or None,
            "evidence": view.evidence or None,
            "rule": view.rule or None,
            "parts": _fit([part_json(one) for one in parts]),
            "total": view.total + len(view.left),
        }
    )


def get_blame(library: Library, asked: Asked) -> Reply:
    """Give the origin of a value."""
    run = library.open_run(asked.parameters["run"])
    name = read_step(asked.parameters["seq"], "the step")
    path = find_path(asked)
    found = find_origin(run, name, path, asked)
    made = find_made(library.store.events.all(run.index.info))
    return reply_json(blame_json(found, made))


def find_origin(run: OpenRun, name: StepName, path: str, asked: Asked) -> Blame:
    """Find where a value came from.

    Raises: ControlError, for what is no place, or one that the step does not have.
    """
    try:
        return find_blame(run.exchanges, name.seq, path, asked.query.get("value"), name.part)
    except LogCorrupt:
        raise
    except StoreError as error:
        raise ControlError(
            400,
            str(error)[:500],
            expected="path: a place",
            found=repr(path)[:100],
            hint=error.hint,
        ) from None


def find_path(asked: Asked) -> str:
    """Read which value is meant.

    Raises: ControlError.
    """
    path = asked.query.get("path", "")
    side = read_word(asked.query, "side", ("request", "answer"))
    if not path or len(path) > 2000:
        raise ControlError(
            400,
            "path cannot be read",
            expected="path: a place, as $.amount",
            found=path[:100] or "none",
        )
    return path if side == "request" or path.startswith("answer ") else f"answer {path}"
