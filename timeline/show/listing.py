"""A run as a page: a line a tool call, with what it caused; 80 columns, to be read over SSH and in a pager.

A model call and its first tool call are one line; the requests of one tool call to one host are one line; so are those that the
agent makes by itself, one after the other. `all` gives each step a line of its own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from ...tape.counted import counted
from ...tape.dialects import Usage
from ...tape.exchange import Seq
from ..reading.exact_body_values import Number, read_json, show_json
from ..steps.step import Lane, Step, StepKind
from .fit import columns, fit, pad

WIDTH = 80
_SEQ = 5
_LANE = 2
_RIGHT = 20
"""Columns for tokens and times."""
_UNSAID = {"cut": "(cut before its end)", "later": "(in the background)"}
"""In the place of what a model call was answered, by why it ended."""
_TOLD = [
    "command",
    "cmd",
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
    "code",
    "input",
]
"""Arguments of tools that say most, the first one first."""
_PATHS = frozenset(("file_path", "path", "notebook_path"))
_PATH, _PATH_HEAD = 36, 10
"""Columns of a path, and of its beginning where its middle is left out."""
_IDLE = re.compile(r"idle for (\d+) s")
_MORE = WIDTH - _SEQ - _LANE - 6
"""Columns for the further tool calls of an answer."""
_ARGUMENT, _LEAST = 24, 6
"""Most and least columns of the arguments of a tool call that shares its line with others."""
_SUMMARY = 16 * 1024
"""Characters of the arguments of a tool call that are parsed for a listing."""


@dataclass(slots=True)
class Counts:
    """What a run had, for the last lines."""

    calls: int = 0
    tools: int = 0
    requests: int = 0
    effects: list[Seq] = field(default_factory=list)
    errors: list[Seq] = field(default_factory=list)
    marks: dict[str, list[Seq]] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Count a step."""
        self.calls += step.kind is StepKind.MODEL_CALL
        self.tools += step.kind is StepKind.TOOL_CALL
        self.requests += step.kind in (StepKind.HTTP, StepKind.MCP)
        if step.effect:
            self.effects.append(step.seq)
        if step.kind is StepKind.ERROR or (step.kind is StepKind.TOOL_RESULT and step.failed):
            self.errors.append(step.seq)
        for mark in step.marks:
            kind = mark.split(" of ")[0].split(" for ")[0]
            self.marks.setdefault(kind, []).append(step.seq)


@dataclass(slots=True)
class Line:
    """A line of the page, before its columns are filled."""

    seq: str
    lane: int
    text: str
    right: str = ""
    key: tuple[object, ...] | None = None
    """Lines one after the other with the same key are folded into one."""
    count: int = 1
    first: str = ""


def list_steps(
    steps: Iterable[Step | None], counts: Counts, *, everything: bool = False
) -> Iterator[str]:
    """Give the lines of a page, each as soon as it is known.

    steps: None says that no more is known for now, so that nothing is waited for to be put into one line with it.
    everything: a line for each step.
    """
    open_line: Line | None = None
    page = _Page(counts, everything=everything)
    for step in chain(steps, (None,)):
        for line in page.add(step) if step is not None else page.flush():
            if open_line is not None and line.key is not None and line.key == open_line.key:
                open_line.count += 1
                open_line.seq = f"{open_line.first}-{line.seq}"
                continue
            if open_line is not None:
                yield _render(open_line)
            line.first = line.seq
            open_line = line
        if step is None and open_line is not None:
            yield _render(open_line)
            open_line = None


class _Page:
    """Takes steps in order, and gives the lines that are whole by then."""

    def __init__(self, counts: Counts, *, everything: bool) -> None:
        self._counts = counts
        self._everything = everything
        self._models: dict[int, str] = {}
        self._call: Step | None = None
        """A model call, whose line says what it answered."""
        self._request: Step | None = None
        """Another request, whose line says what went wrong."""
        self._more: list[Step] = []
        """Further tool calls of an answer."""

    def add(self, step: Step) -> Iterator[Line]:
        """Take the next step."""
        self._counts.add(step)
        if self._more and step.kind is not StepKind.TOOL_CALL:
            yield from self._flush_more()
        call, request = self._call, self._request
        is_beside = step.kind in (StepKind.DECISION, StepKind.SNAPSHOT)
        if call is not None and (is_beside or (step.seq, step.part) != (call.seq, call.part)):
            yield from self._say("")
        if request is not None:
            failed = step.kind is StepKind.ERROR and step.seq == request.seq
            self._request = None
            yield _request_line(request, step.text if failed else "")
            if failed:
                return
        if self._everything:
            yield _step_line(step)
        else:
            yield from self._add(step)

    def _add(self, step: Step) -> Iterator[Line]:
        match step.kind:
            case StepKind.MODEL_CALL if step.aside:
                yield Line(str(step.seq), 0, f"({step.aside}) {step.text}", _right(step))
            case StepKind.MODEL_CALL:
                self._call = step
            case StepKind.TOOL_CALL | StepKind.OUTPUT if self._call is not None:
                yield from self._say(_says(step), step.marks)
            case StepKind.TOOL_CALL | StepKind.OUTPUT:
                self._more.append(step)
            case StepKind.ERROR | StepKind.POLICY if self._call is not None:
                yield from self._say(f"! {step.text}")
            case StepKind.ERROR | StepKind.POLICY:
                yield Line("", step.lane, f"! {step.text}")
            case StepKind.TOOL_RESULT if step.failed:
                yield Line(str(step.seq), step.lane, f"! {step.name} failed: {step.text}")
            case StepKind.HTTP | StepKind.MCP | StepKind.RETRIEVAL:
                self._request = step
            case StepKind.DECISION:
                yield Line("", step.lane, f"  gate: {step.text}")
            case StepKind.SNAPSHOT:
                yield Line("", step.lane, f"  snapshot: {step.text}")

    def flush(self) -> Iterator[Line]:
        """Give what waits for another step."""
        yield from self._flush_more()
        yield from self._say("")
        if self._request is not None:
            yield _request_line(self._request, "")
            self._request = None

    def _flush_more(self) -> Iterator[Line]:
        more, self._more = self._more, []
        yield from _more_lines(more)

    def _say(self, text: str, marks: tuple[str, ...] = ()) -> Iterator[Line]:
        """Give the line of the model call that waits for one."""
        call, self._call = self._call, None
        if call is not None:
            unsaid = _UNSAID.get(call.finish or "", "(no answer)")
            yield _call_line(call, text or unsaid, self._models, marks)


def _more_lines(calls: list[Step]) -> Iterator[Line]:
    """Give the further tool calls of an answer: each is named, and as many as fit are in one line."""
    if len(calls) == 1:
        yield Line("", calls[0].lane, f"{_marked(calls[0].marks)}{_says(calls[0])}")
        return
    groups: list[list[Step]] = []
    for step in calls:
        alike = groups and groups[-1][0].name == step.name and not step.marks
        if alike:
            groups[-1].append(step)
        else:
            groups.append([step])
    names = []
    for group in groups:
        times = f" ×{len(group)}" if len(group) > 1 else ""
        names.append(f"{_marked(group[0].marks)}{fit(group[0].name, 30)}{times}")
    alone = sum(len(group) == 1 for group in groups)
    room = _MORE - sum(columns(name) + 2 for name in names)
    each = min(_ARGUMENT, room // alone - 1) if alone else 0
    text = ""
    for group, name in zip(groups, names, strict=True):
        more = each >= _LEAST and len(group) == 1
        piece = f"{name} {fit(show_arguments(group[0].text), each)}".rstrip() if more else name
        if text and columns(text) + columns(piece) + 2 > _MORE:
            yield Line("", calls[0].lane, f"+ {text}")
            text = ""
        text = f"{text}; {piece}" if text else piece
    if text:
        yield Line("", calls[0].lane, f"+ {text}")


def _call_line(call: Step, text: str, models: dict[int, str], marks: tuple[str, ...] = ()) -> Line:
    shown = _marked((*call.marks, *marks))
    if call.name and models.get(call.lane) != call.name:
        if call.lane in models:
            shown += f"({call.name}) "
        models[call.lane] = call.name
    seq = f"{call.seq}.{call.part}" if call.part else str(call.seq)
    return Line(seq, call.lane, shown + text, _right(call))


def _request_line(step: Step, error: str) -> Line:
    mark = _marked(step.marks)
    right = _took(step)
    sign = "! " if error else "* " if step.effect else "  "
    if step.kind is StepKind.RETRIEVAL:
        told = f"! {error}" if error else ""
        return Line(
            str(step.seq), step.lane, f"{mark}retrieval, {step.name} {told}".rstrip(), right
        )
    if step.kind is StepKind.MCP:
        text = f"{mark}{sign}MCP {step.name}: {error or step.text}"
        return Line(str(step.seq), step.lane, text, right)
    method, _, url = step.name.partition(" ")
    status = step.text.partition(",")[0]
    short = url.partition("://")[2]
    host = short.partition("/")[0]
    text = f"{mark}{sign}{method} {_short_url(short)} {error or status}"
    key: tuple[object, ...] | None = None
    if not step.marks:
        if step.cause is None and not step.effect:
            key = "agent", host, step.failed
        elif step.cause is not None and not step.effect:
            key = step.cause, host, step.failed
    return Line(str(step.seq), step.lane, text, right, key)


def _short_url(url: str, most: int = 46) -> str:
    """Leave out the query of a long URL, and then the middle of its path: what comes behind it is to be seen, too."""
    short = url.partition("?")[0] if len(url) > most else url
    short = f"{short}?…" if len(short) < len(url) else short
    return short if len(short) <= most else f"{short[: most - 12]}…{short[-11:]}"


def _step_line(step: Step) -> Line:
    text = step.text
    if step.kind is StepKind.TOOL_CALL:
        text = _says(step)
    elif step.kind in (StepKind.MODEL_CALL, StepKind.MCP):
        text = f"{step.name} {f'({step.aside}) ' if step.aside else ''}{text}"
    elif step.kind is StepKind.HTTP:
        text = f"{'* ' if step.effect else ''}{step.name} {text}"
    elif step.name:
        text = f"{step.name}: {text}"
    seq = f"{step.seq}.{step.part}" if step.part else str(step.seq)
    right = _right(step) if step.usage is not None else _took(step)
    return Line(seq, step.lane, f"{step.kind.value}: {_marked(step.marks)}{text}", right)


def _says(step: Step) -> str:
    """Say what a model said, or what it wants called."""
    if step.kind is StepKind.OUTPUT:
        return f"= {step.text}"
    return f"{step.name} {show_arguments(step.text)}"


def show_arguments(text: str) -> str:
    """Give the argument of a tool call that says most, or all of them."""
    if len(text) > _SUMMARY:
        return text
    read = read_json(text.encode("utf-8", "surrogatepass"))
    if read is None or read.lost or not isinstance(read.value, dict):
        return text
    given = read.value
    for name in _TOLD:
        value = given.get(name)
        if isinstance(value, str) and value and not isinstance(value, Number):
            return _short_path(value) if name in _PATHS else value
    return ", ".join(
        f"{name}={value if isinstance(value, str) else show_json(value)}"
        for name, value in given.items()
    )


def _short_path(path: str) -> str:
    """Leave out the middle of a long path: its end says most."""
    long = len(path) > _PATH and "\n" not in path
    return f"{path[:_PATH_HEAD]}…{path[_PATH_HEAD + 1 - _PATH :]}" if long else path


def _marked(marks: Iterable[str]) -> str:
    return "".join(f"[{_short_mark(mark)}] " for mark in marks)


def _short_mark(mark: str) -> str:
    """Give a mark in a few columns: the line is for what was done."""
    idle = _IDLE.fullmatch(mark)
    return f"idle {show_time(int(idle[1]) * 1_000_000)}" if idle is not None else mark


def _right(step: Step) -> str:
    tokens = ""
    if step.usage is not None:
        counted = step.usage.count()
        tokens = show_tokens(counted.asked, counted.said, at_least=step.at_least)
    elif step.at_least:
        tokens = show_tokens(None, None, at_least=True)
    return f"{tokens} {_took(step):>6}" if tokens else _took(step)


def show_tokens(asked: int | None, said: int | None, *, at_least: bool) -> str:
    """Give tokens in a few characters: `10+5`, `≥ 10+5` where more may have been billed, `?` where none are stated."""
    if at_least and not asked and not said:
        return "?"
    return f"{'≥ ' if at_least else ''}{_number(asked)}+{_number(said)}"


def input_tokens(usage: Usage) -> int | None:
    """Count the tokens of a context, those from a cache, too; None where they are not stated."""
    if usage.input_tokens is None or usage.cached_in_input:
        return usage.input_tokens
    return usage.input_tokens + (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0)


def _took(step: Step) -> str:
    return show_time(step.timing.took_us) if step.timing is not None else ""


def show_time(us: int) -> str:
    """Give a time in a few characters."""
    if us < 1_000_000:
        return f"{us // 1000}ms"
    seconds = us / 1e6
    return f"{seconds:.1f}s" if seconds < 100 else f"{seconds / 60:.0f}min"


def _number(value: int | None) -> str:
    if value is None:
        return "?"
    if value < 10_000:
        return str(value)
    return f"{value / 1000:.0f}k" if value < 1_000_000 else f"{value / 1e6:.1f}M"


def _render(line: Line) -> str:
    text = line.text
    if line.count > 1:
        _, _, rest = text.strip().partition(" ")
        host = rest.partition("/")[0]
        text = f"  {line.count} requests to {host}"
        line.right = ""
    seq = line.seq if len(line.seq) >= _SEQ + 2 else line.seq.rjust(_SEQ + 2)
    lane = str(line.lane) if line.lane else "·"
    left = f"{seq} {lane:<{_LANE}} "
    room = WIDTH - columns(left) - (len(line.right) + 1 if line.right else 0)
    shown = fit(text, room) if not text.startswith("  ") else "  " + fit(text, room - 2)
    return (
        f"{left}{pad(shown, room)} {line.right}".rstrip()
        if line.right
        else f"{left}{shown}".rstrip()
    )


def list_lanes(lanes: Iterable[Lane], most: int = 12) -> Iterator[str]:
    """Give a line for each lane."""
    listed, clients = list(lanes), set[str]()
    for lane in listed[:most]:
        tokens = show_tokens(lane.input_tokens, lane.output_tokens, at_least=bool(lane.at_least))
        of = f", of lane {lane.parent}" if lane.parent else ""
        calls = counted(lane.calls, "call")
        models = ", ".join(lane.models)
        head = f"lane {lane.number}{of}: {calls}, {tokens} tokens, {models or 'model not stated'}"
        yield fit(f"{head}{f'; {lane.name}' if lane.name else ''}", WIDTH)
        if lane.client and lane.client not in clients:
            clients.add(lane.client)
            yield f"  {fit(f'client: {lane.client}', WIDTH - 2)}"
    if len(listed) > most:
        yield f"… and {len(listed) - most} more lanes"


def list_counts(counts: Counts) -> Iterator[str]:
    """Give the lines that end a page."""
    told = (
        (counts.calls, "model call"),
        (counts.tools, "tool call"),
        (counts.requests, "other request"),
    )
    yield ", ".join(counted(count, what) for count, what in told)
    if counts.effects:
        yield fit(f"effects (*): {_seqs(counts.effects)}", WIDTH)
    if counts.errors:
        yield fit(f"errors (!): {_seqs(counts.errors)}", WIDTH)
    for mark, seqs in counts.marks.items():
        yield fit(f"{mark}: {_seqs(seqs)}", WIDTH)


def _seqs(seqs: list[Seq]) -> str:
    shown = ", ".join(str(seq) for seq in dict.fromkeys(seqs[:14]))
    return f"{shown} … {len(seqs)} in all" if len(seqs) > 14 else shown
