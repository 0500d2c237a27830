"""Show the steps of a run: as a page, as JSON, as a graph, or as they come."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from ...config import Config
from ...store import RunInfo, RunStatus, Store, StoreError
from ...tape.exchange import Exchange, RequestClass
from ...timeline.lookup.nearest_seq import no_exchange
from ...timeline.receipts.exchange_rows import rows
from ...timeline.show.fit import fit
from ...timeline.show.graph import draw_graph
from ...timeline.show.listing import WIDTH, Counts, list_counts, list_lanes, list_steps
from ...timeline.show.steps_json import lane_json, step_json
from ...timeline.state.calls_before import Exchanges, find_before, read_answer
from ...timeline.state.show_exchange import show_bodies, show_call, show_head
from ...timeline.steps.call import read_call
from ...timeline.steps.context import read_context
from ...timeline.steps.read_run import RunReader
from ...timeline.steps.step import Step
from ..operations.open_store import open_store
from ..operations.restore_archived import find_archived_step, restore_runs

_EVERY_S = 0.3
"""How often a run that is still recorded is looked at."""


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """How the steps of a run are shown."""

    as_json: bool = False
    everything: bool = False
    pattern: re.Pattern[str] | None = None
    """Steps with it alone."""
    follow: bool = False
    graph: str | None = None


def parse_pattern(text: str | None) -> re.Pattern[str] | None:
    """Read a regular expression.

    Raises: ValueError, saying what is wrong and where.
    """
    if text is None:
        return None
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise ValueError(
            f"{text!r} is no regular expression: {error}; put a \\ before a character that is meant as it is"
        ) from None


def show_run(config: Config, run: str, options: ShowOptions) -> int:
    """Print the steps of a run.

    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        info = store.runs.get(run)
        reader = RunReader(store, info)
        steps = _follow(store, reader) if options.follow else reader.read()
        if options.pattern is not None:
            steps = _matching(steps, options.pattern)
        if options.graph is not None:
            for line in draw_graph(steps, options.graph):
                click.echo(line)
        elif options.as_json:
            _print_json(info, reader, steps)
        else:
            _print_page(info, reader, steps, options)
    return 0


def _print_page(
    info: RunInfo, reader: RunReader, steps: Iterable[Step], options: ShowOptions
) -> None:
    plays = f", plays {info.parent}" if info.parent else ""
    click.echo(fit(f"run {info.id}: {info.mode}, {info.status.value}{plays}", WIDTH))
    if info.agent:
        click.echo(fit(f"agent: {info.agent}", WIDTH))
    click.echo("    SEQ L  STEP" + "TOKENS   TIME".rjust(WIDTH - 15))
    counts = Counts()
    for line in list_steps(steps, counts, everything=options.everything):
        click.echo(line)
    click.echo()
    for line in (*list_lanes(reader.lanes), *list_counts(counts)):
        click.echo(line)


def _print_json(info: RunInfo, reader: RunReader, steps: Iterable[Step]) -> None:
    """Print an object with the run, its steps and its lanes; a step as soon as it is there."""
    click.echo(f'{{"run": {json.dumps(info.id)}, "steps": [', nl=False)
    first = True
    for step in steps:
        click.echo(("" if first else ",") + "\n" + json.dumps(step_json(step)), nl=False)
        first = False
    lanes = json.dumps([lane_json(lane) for lane in reader.lanes])
    click.echo(f'\n], "lanes": {lanes}}}')


def _matching(steps: Iterable[Step], pattern: re.Pattern[str]) -> Iterator[Step]:
    for step in steps:
        if pattern.search(step.name) or pattern.search(step.text):
            yield step


def _follow(store: Store, reader: RunReader) -> Iterator[Step]:
    """Give the steps of a run until it has ended."""
    while True:
        ended = store.runs.reload(reader.info).status is not RunStatus.OPEN
        yield from reader.read(end=ended)
        if ended:
            return
        time.sleep(_EVERY_S)


def no_such_exchange(store: Store, info: RunInfo, seq: int) -> StoreError:
    """Say that a run has no exchange of a seq: which it has, and which is the nearest."""
    seqs = [row["seq"] for row in rows(store, info)] or list(store.exchanges.seqs(info))
    return no_exchange(info.id, seq, seqs)


def show_exchange(config: Config, run: str, seq: int) -> int:
    """Print one exchange, decoded; one that is archived is read where it is.

    Raises: UnknownRun; StoreError for a seq that the run does not have, naming its range and the nearest.
    """
    archived = find_archived_step(config, run, seq)
    if archived is not None:
        _print_exchange(archived.exchange, None, run)
        return 0
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        exchanges = Exchanges(store, store.runs.get(run))
        exchange = exchanges.find(seq)
        if exchange is None:
            raise no_such_exchange(store, exchanges.info, seq)
        _print_exchange(exchange, exchanges, run)
    return 0


def _print_exchange(exchange: Exchange, exchanges: Exchanges | None, run: str) -> None:
    how = f"playhead show {run} {exchange.seq} --raw"
    for line in show_head(exchange):
        click.echo(line)
    asked = [(0, exchange)] if exchange.websocket is None else []
    if exchanges is not None:
        asked = exchanges.asked(exchange)
    shown = False
    for part, made in asked:
        for line in _call_lines(made, part, exchanges, how):
            click.echo(line)
            shown = True
    if not shown:
        for line in show_bodies(exchange, how):
            click.echo(line)
    click.echo(f"every byte: {how}")


def _call_lines(
    exchange: Exchange, part: int, exchanges: Exchanges | None, how: str
) -> Iterator[str]:
    if exchange.request_class is not RequestClass.INFERENCE or exchange.request.spilled is not None:
        return
    context = read_context(exchange.request, exchange.seq)
    if context is None or context.asked.rpc:
        return
    call = read_call(exchange, context, read_answer(exchange), part)
    before = find_before(exchanges, call) if exchanges is not None and not call.aside else None
    if before is not None:
        against = read_context(exchange.request, exchange.seq, before[0].context)
        if against is not None:
            call.context = against
    if part:
        yield f"model call {exchange.seq}.{part}"
    yield from show_call(call, before, how)
