"""The history of a resource, as text in 80 columns and as JSON types."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ...tape.counted import counted
from ..show.fit import fit
from ..show.listing import WIDTH
from .find_resource_history import Change, History, Place
from .resource_state import Field, No, State

_MOST = 20
"""Fields of a change that are shown."""
_WIDE = 32
"""Columns of a value that is shown beside another."""


def render_history(history: History) -> Iterator[str]:
    """Give the lines of a history."""
    yield fit(history.url, WIDTH)
    counts = {"refused": history.refused, "of unknown outcome": history.unanswered}
    failed = ", ".join(f"{count} {how}" for how, count in counts.items() if count)
    told = f"{counted(history.reads, 'read')}, {counted(history.writes, 'write')}"
    told += f" ({failed})" if failed else ""
    yield f"{counted(len(history.runs), 'run')}, {told}"
    if not history.changes:
        yield "no change was seen" if history.first else "no answer says in JSON what it is"
    if history.posts:
        yield ""
        yield "posted to it"
        for post in history.posts:
            made = f", which gave {post.made}" if post.made is not None else ""
            yield f"  {fit(f'{_place(post.place)}{made}', WIDTH - 2)}"
    for change in history.changes:
        yield ""
        yield from _render_change(change)
    if history.old_reads:
        yield ""
        yield "read an old value"
        for old in history.old_reads:
            by = old.change.by or old.change.seen
            told = f"{old.field.path} {show_state(old.field.old)}, {show_state(old.field.new)} since {_place(by)}"
            yield f"  {fit(f'{_place(old.place)}: {told}', WIDTH - 2)}"
    if history.stale:
        yield ""
        yield "written on a stale read"
        for stale in history.stale:
            yield f"! {fit(f'{_place(stale.place)}, which had last seen it in {_place(stale.read)};', WIDTH - 2)}"
            writer = stale.change.by
            seen = _place(stale.change.seen)
            who = _place(writer) if writer is not None else f"somebody else, seen in {seen}"
            yield f"    {fit(f'since then it was {_verb(stale.change)} by {who}', WIDTH - 4)}"
            if stale.lost:
                yield f"    {fit('lost: ' + ', '.join(stale.lost), WIDTH - 4)}"


def _render_change(change: Change) -> Iterator[str]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change.at_ns / 1e9))
    if change.by is None:
        or_by = f" or by {_place(change.maybe)}, which may have done so" if change.maybe else ""
        who = f"by somebody whom no run recorded{or_by}, first seen in {_place(change.seen)}"
    elif not change.is_recorded:
        seen = f"whose answer does not say so; first seen in {_place(change.seen)}"
        who = f"by {_place(change.by)} ({change.method}), {seen}"
    else:
        who = f"by {_place(change.by)} ({change.method})"
    yield fit(f"{at} {_verb(change)} {who}", WIDTH)
    if not change.fields:
        yield "  nothing is another"
    for field in change.fields[:_MOST]:
        yield f"  {fit(_show_field(field), WIDTH - 2)}"
    if len(change.fields) > _MOST:
        yield f"  … and {len(change.fields) - _MOST} more fields"


def _verb(change: Change) -> str:
    whole = [field for field in change.fields if field.path == "$"]
    if whole and whole[0].old is No.MISSING:
        return "made"
    return "deleted" if whole and whole[0].new is No.MISSING else "changed"


def _show_field(field: Field) -> str:
    old, new = show_state(field.old), show_state(field.new)
    if field.old is No.MISSING and field.path == "$":
        return new
    return f"{field.path}: {fit(old, _WIDE)} -> {new}"


def show_state(state: State) -> str:
    """Give a value as JSON, or the word for one that is not there."""
    if isinstance(state, No):
        return f"({state.value})"
    return json.dumps(state, ensure_ascii=False)


def _place(place: Place) -> str:
    return f"{place.run} {place.seq}"


def history_json(history: History) -> dict[str, Any]:
    """Give it as JSON types; `docs/blame.md` describes them."""
    return {
        "url": history.url,
        "runs": history.runs,
        "reads": history.reads,
        "writes": history.writes,
        "refused": history.refused,
        "unanswered": history.unanswered,
        "first": asdict(history.first) if history.first is not None else None,
        "changes": [_change(one) for one in history.changes],
        "old_reads": [
            {**asdict(one.place), **_field(one.field), "changed": _by(one.change)}
            for one in history.old_reads
        ],
        "stale": [
            {
                **asdict(one.place),
                "read": asdict(one.read),
                "changed": _by(one.change),
                "lost": list(one.lost),
            }
            for one in history.stale
        ],
        "posts": [{**asdict(one.place), "made": one.made} for one in history.posts],
        "state": _state(history.state),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        **_by(change),
        "method": change.method,
        "evidence": "recorded" if change.is_recorded else "inferred",
        "maybe": asdict(change.maybe) if change.maybe is not None else None,
        "at_ns": change.at_ns,
        "fields": [_field(field) for field in change.fields],
    }


def _by(change: Change) -> dict[str, Any]:
    by = change.by
    return {
        "run": by.run if by is not None else None,
        "seq": by.seq if by is not None else None,
        "seen": asdict(change.seen),
    }


def _field(field: Field) -> dict[str, Any]:
    return {"path": field.path, "old": _state(field.old), "new": _state(field.new)}


def _state(state: State) -> dict[str, Any]:
    return {state.value: True} if isinstance(state, No) else {"value": state}
