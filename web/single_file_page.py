"""A run as one file: its page with all that it shows, each text once, and nothing that has to be asked for.

The file has three parts that are ours (markup, style, script) and one that was recorded: JSON, in a script element that no browser runs.
Its policy allows the very style and script that stand in it, by their hashes, and nothing else. `verify` removes the receipt from it
and compares the hash of the rest with the one that was signed.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

from ..store import RunInfo, Store, StoreError
from ..timeline import build
from ..timeline.blame.find_origin import find_blame
from ..timeline.state.calls_before import Exchanges
from ..timeline.steps.tracer import Price
from .assets import STATIC
from .render import render
from .views.cause_view import view_cause
from .views.context_view import ContextView, PartView, view_context
from .views.exchange_view import Side, view_exchange
from .views.run_facts import read_facts, run_row
from .views.run_index import EFFECTS, Mark, RunIndex, find_unsent, first_effects, tell_results
from .views.run_page_sections import view_cache, view_files, view_receipt
from .views.safe_text import Shown, safe_short, show_bytes, show_clock
from .views.step_rows import fold_steps
from .views.timeline_strip import Axis, draw_strip
from .views.value_tree import Line

VERSION = 1
MOST_STEPS = 20_000
RECEIPT = b'<script type="application/json" id="receipt">'
_END = b"</script>"
_TEXT = 8000
"""Characters of a text that are kept."""
_CAUSED, _VALUES = 100, 30
"""Effects, and values of each, whose origin is in the file."""
_STRIP = 1200
_EVENTS = 10_000

Redact = Callable[[str], str]
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Shared:
    """Texts, each of which is there once, its secrets replaced by the rules of now."""

    redact: Redact
    texts: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    _short: dict[str, str] = field(default_factory=dict)

    def long(self, shown: Shown) -> list[int]:
        """Give the number of a text, and how many bytes of it are left out."""
        text = shown.text
        left = shown.left_out
        if len(text) > _TEXT:
            left += len(text[_TEXT:].encode("utf-8", "surrogatepass"))
            text = text[:_TEXT]
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.texts)
            self.texts.append(self.redact(text))
        return [place, left]

    def short(self, text: str) -> str:
        """Give a short text without its secrets."""
        found = self._short.get(text)
        if found is None:
            found = self._short[text] = self.redact(text)
        return found

    def deep(self, value: Any) -> Any:
        """Give a value of JSON types without secrets in its texts."""
        if isinstance(value, str):
            return self.short(value)
        if isinstance(value, dict):
            return {self.short(key): self.deep(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.deep(one) for one in value]
        return value


@dataclass(slots=True)
class OneFile:
    """A file before it is signed: `make` puts the receipt in."""

    before: bytes
    behind: bytes
    chain: str
    """Hash that ends the log of the run, in hexadecimal digits."""

    @property
    def content(self) -> str:
        """Hash of all but the receipt, in hexadecimal digits."""
        return hash_content(self.before, self.behind)

    def make(self, receipt: dict[str, Any]) -> bytes:
        """Give the file with a signed receipt."""
        return self.before + _spell(receipt).encode() + self.behind


def hash_content(before: bytes, behind: bytes) -> str:
    """Give the hash of a file without its receipt."""
    return sha256(before + b"\0" + behind).hexdigest()


def split_file(data: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Give a file in three: before its receipt, the receipt, and what is behind; None for what is no such file."""
    at = data.find(RECEIPT)
    if at < 0 or data.find(RECEIPT, at + 1) >= 0:
        return None
    at += len(RECEIPT)
    end = data.find(_END, at)
    return None if end < 0 else (data[:at], data[at:end], data[end:])


def is_own_spelling(receipt: bytes) -> bool:
    """Say whether a receipt is spelled as here: what it quotes could be markup of the file else, with the same values."""
    try:
        return _spell(json.loads(receipt)).encode() == receipt
    except (ValueError, RecursionError):
        return False


def make_file(
    store: Store,
    info: RunInfo,
    redact: Redact,
    price: Price | None,
    progress: Progress,
    chain: str | None = None,
) -> OneFile:
    """Read a run into one file.

    redact: replaces secrets by the rules of now, in what is said of the run beside its exchanges and events.
    chain: hash that ends the log of the run, where this one is a copy.
    Raises: StoreError, where the run is too long; LogCorrupt.
    """
    if info.exchanges > MOST_STEPS:
        raise StoreError(
            f"run {info.id!r} has {info.exchanges} exchanges, and one file holds {MOST_STEPS}",
            "share it as a tape: playhead export --tape, and look at it with playhead ui",
        )
    index = RunIndex(store, info, price)
    while index.read_log(_EVENTS):
        pass
    while index.read_steps(50):
        progress(index.stepped, 2 * len(index))
    shared = _Shared(redact)
    chain = find_chain(store, info) if chain is None else chain
    document = _document(store, index, shared, progress)
    document["chain"] = chain
    text = render("one_file", run=info.id, **_assets(), data=_Markup(_spell(document)))
    data = text.encode("utf-8", "backslashreplace")
    at = data.index(RECEIPT) + len(RECEIPT)
    return OneFile(data[:at], data[at:], chain)


def find_chain(store: Store, info: RunInfo) -> str:
    """Give the hash that ends the log of a run, in hexadecimal digits."""
    last = b""
    for value in store.events.raw(info):
        last = value
    return last[:16].hex()


class _Markup(str):
    """JSON of ours: it has no `<`, so that it ends no element."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def _spell(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _assets() -> dict[str, Any]:
    style = (STATIC / "page.css").read_text("utf-8")
    parts = ((STATIC / f"{name}.js").read_text("utf-8") for name in ("styles", "strip", "file"))
    # Modules of the page, as one script: what one exports the others see.
    script = re.sub(r"^import .*\n|^export ", "", "".join(parts), flags=re.MULTILINE)
    script = f'"use strict";\n{script}\nstart();\n'
    policy = (
        f"default-src 'none'; script-src {_allow(script)}; style-src {_allow(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    return {"style": _Markup(style), "script": _Markup(script), "policy": _Markup(policy)}


def _allow(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _document(store: Store, index: RunIndex, shared: _Shared, progress: Progress) -> dict[str, Any]:
    info = index.info
    exchanges = Exchanges(store, info)
    axis = Axis(index)
    steps: list[dict[str, Any]] = []
    places: dict[tuple[int, ...], int] = {}
    for position in range(len(index)):
        progress(len(index) + position, 2 * len(index))
        steps.append(_step(index, axis, exchanges, position, shared, places, steps))
    receipt = view_receipt(store, info)
    facts = read_facts(store, info)
    row = run_row(store, info, facts, max(info.sealed_ns, index.ended_ns, info.created_ns))
    summary = [
        ("outcome", f"{row['outcome']} {row['told']}".strip()),
        ("verdict", facts.verdict),
        ("cost", facts.usd or "—"),
        (
            "tokens",
            f"{'≥ ' if facts.at_least else ''}{facts.input_tokens} in, {facts.output_tokens} out"
            + (" of calls that were sent" if info.parent is not None else ""),
        ),
        ("began", row["began"]),
        ("lasted", row["duration"]),
        ("labels", ", ".join(row["labels"])),
        ("agent", row["agent"]),
    ]
    listed = first_effects(index, EFFECTS)
    results = tell_results(index, {seq for seq, _, _ in listed})
    effects = [
        [
            seq,
            ", ".join(filter(None, (name, find_unsent(index, seq)))),
            _repeat_of(exchanges, seq) if twice else "",
            safe_short(results.get(seq, ""), 240),
        ]
        for seq, name, twice in listed
    ]
    return {
        "version": VERSION,
        "run": info.id,
        "summary": shared.deep([pair for pair in summary if pair[1]]),
        "effects": shared.deep(effects),
        "strip": shared.deep(draw_strip(index, _STRIP)),
        "steps": steps,
        "causes": shared.deep(_causes(index, exchanges)),
        "receipt": shared.long(Shown(receipt["text"])),
        "divergences": [
            shared.deep([one["seq"], one["kind"], one["what"], one["text"]])
            for one in receipt["divergences"]
        ],
        "cache": [
            shared.deep([one["name"], one["verdict"], one["read"], one["prompt"], one["reason"]])
            for one in view_cache(store, info)[:2000]
        ],
        "files": shared.deep(_files(view_files(store, info))),
        "texts": shared.texts,
    }


def _files(view: dict[str, Any] | None) -> dict[str, Any] | None:
    """Give what the working folder held, in a line, and what became of it at its savepoints."""
    if view is None:
        return None
    commit = f", commit {view['head']}" if view["head"] else ""
    branch = f" on {view['branch']}" if view["branch"] else ""
    about = (
        f"{view['folder']}: {view['files']:,} files, {show_bytes(view['bytes'])}{commit}{branch}"
    )
    if view["cut"]:
        about += f"; more is not known: {view['cut']}"
    rows = [[one["at"], one["paths"], one["more"]] for one in view["rows"]]
    return {"about": about, "rows": rows}


def _repeat_of(exchanges: Exchanges, seq: int) -> str:
    exchange = exchanges.find(seq)
    repeat = exchange.repeat if exchange is not None else None
    return f"possible duplicate of {repeat.of}" if repeat is not None else "possible duplicate"


def _step(
    index: RunIndex,
    axis: Axis,
    exchanges: Exchanges,
    position: int,
    shared: _Shared,
    places: dict[tuple[int, ...], int],
    steps: list[dict[str, Any]],
) -> dict[str, Any]:
    seq, marks = index.seqs[position], index.marks[position]
    folded = index.pages.get(position)
    row = fold_steps(seq, folded)
    told: dict[str, Any] = {
        "seq": seq,
        "kind": index.kind_of(position),
        "lane": row["lane"],
        "title": shared.short(row["title"] or index.effects.get(position, "")),
        "said": shared.short(row["said"]),
        "took": index.took[position],
        "place": [round(axis.begin(position), 6), round(axis.end(position), 6)],
        "effect": bool(marks & Mark.EFFECT),
        "failed": bool(marks & Mark.FAILED) or row["failed"],
        "twice": bool(marks & Mark.DUPLICATE),
        "marks": shared.deep(
            [*row["marks"], *([row["error"]] if row["error"] else []), *row["notes"]]
        ),
        "tokens": row["tokens"],
        "before": index.before_effect(seq) if row["effect"] or marks & Mark.EFFECT else None,
        "edges": [
            [edge["from"], edge["evidence"], shared.short(edge["rule"])]
            for step in folded
            for edge in step["edges"]
        ],
    }
    exchange = exchanges.find(seq)
    if exchange is None:
        return told
    messages = list(islice(exchanges.messages(exchange), 301)) if exchange.websocket else None
    view = view_exchange(exchange, messages)
    is_call = row["calls"] > 0 and not row["aside"] and exchange.websocket is None
    told |= {
        "head": shared.short(view.request.head),
        "outcome": shared.short(view.outcome),
        "at": show_clock(exchange.started_ns),
        "notes": shared.deep(view.notes),
        "request": _side(view.request, shared, is_call=is_call),
        "answer": _side(view.answer, shared) if view.answer is not None else None,
    }
    if is_call:
        try:
            context = view_context(exchanges, seq, begin=0, window=1 << 20)
        except StoreError:
            return told
        told["context"] = _context(context, shared, steps)
    return told


def _side(side: Side, shared: _Shared, *, is_call: bool = False) -> dict[str, Any]:
    told: dict[str, Any] = {
        "head": shared.short(side.head),
        "told": shared.deep(side.told),
        "fields": shared.deep(side.fields),
        "bytes": side.body_bytes,
        "note": shared.short(side.note),
    }
    if is_call:
        told["note"] = "its body has the conversation that is below, as Context"
        return told
    if side.lines:
        told["lines"] = [_line(one, shared) for one in side.lines]
    if side.text is not None:
        told["text"] = shared.long(side.text)
    if side.pieces:
        told["pieces"] = [[one.at_us, one.size, one.pause_us] for one in side.pieces]
    return told


def _line(line: Line, shared: _Shared) -> list[Any]:
    return [
        line.depth,
        shared.short(line.name),
        shared.long(Shown(line.text))[0],
        shared.short(line.place),
        line.kind,
        line.left_out,
        line.more,
    ]


def _context(view: ContextView, shared: _Shared, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the context of a call: where an earlier one begins with the same parts, how many of these."""
    parts = [_part(one, shared) for one in view.parts]
    keep, of = 0, -1
    before = int(view.since.partition(".")[0]) if view.since else 0
    for number in range(len(steps) - 1, -1, -1):
        earlier = steps[number]
        if earlier["seq"] == before and "context" in earlier:
            known = _whole(steps, number)
            while keep < min(len(known), len(parts)) and known[keep][:4] == parts[keep][:4]:
                keep += 1
            of = number
            break
    return {
        "model": shared.short(view.model),
        "since": view.since,
        "evidence": view.evidence,
        "rule": shared.short(view.rule),
        "system": shared.long(view.system),
        "of": of if keep else -1,
        "keep": keep,
        "entered": [at for at, one in enumerate(view.parts[:keep]) if one.change == "entered"],
        "parts": parts[keep:],
        "left": [_part(one, shared) for one in view.left],
        "unknown": shared.deep(view.unknown),
        "next": [shared.long(Shown(one))[0] for one in view.next],
        "pending": shared.deep(view.pending),
    }


def _whole(steps: list[dict[str, Any]], number: int) -> list[Any]:
    """Give all parts of the context of a step that is there."""
    chain: list[dict[str, Any]] = []
    while number >= 0:
        context = steps[number]["context"]
        chain.append(context)
        number = context["of"]
    parts: list[Any] = []
    for context in reversed(chain):
        parts = [*parts[: context["keep"]], *context["parts"]]
    return parts


def _part(one: PartView, shared: _Shared) -> list[Any]:
    text, left = shared.long(one.text)
    return [
        shared.short(one.what),
        shared.short(one.name),
        text,
        left,
        1 if one.change in ("entered", "perhaps left") else 0,
        one.origin,
        one.size,
    ]


def _causes(index: RunIndex, exchanges: Exchanges) -> dict[str, Any]:
    """Find where the values of effects came from: what somebody will ask of the file."""
    found: dict[str, Any] = {}
    for seq, _, _ in first_effects(index, _CAUSED):
        exchange = exchanges.find(seq)
        if exchange is None or exchange.websocket is not None:
            continue
        lines = [one for one in view_exchange(exchange).request.lines if one.place][:_VALUES]
        for line in lines:
            try:
                blame = find_blame(exchanges, seq, line.place)
            except StoreError:
                continue
            found[f"{seq} {line.place}"] = view_cause(blame, index.info.id)
    return found


def signed_part(
    store: Store, info: RunInfo, file: OneFile, redact: Callable[[str], str]
) -> dict[str, Any]:
    """Give what is signed: the receipt of the run, with the chain of its log and the hash of the file.

    redact: takes out of its texts what is a secret by now.
    """
    return {
        **_Shared(redact).deep(build(store, info).to_json()),
        "chain": file.chain,
        "content": file.content,
    }
