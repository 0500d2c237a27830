"""Show the steps of a run: as a page, as JSON, as a graph, or as they come."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from ... import PlayheadError
from ...config import Config
from ...store import RunInfo, RunStatus, Store
from ...tape.exchange import Exchange, RequestClass
from ...tape.folders.manifest import GitState
from ...tape.shell_words import shell_word
from ...timeline.outcomes.outcome import Verdict, find_outcome, outcome_json
from ...timeline.show.fit import fit
from ...timeline.show.graph import draw_graph
from ...timeline.show.listing import WIDTH, Counts, list_counts, list_lanes, list_steps
from ...timeline.show.pattern_in_step import find_match, with_match
from ...timeline.show.programs import git_json, list_programs, program_json
from ...timeline.show.steps_json import lane_json, step_json
from ...timeline.state.calls_before import Exchanges, read_answer
from ...timeline.state.lane_before import find_before
from ...timeline.state.show_exchange import show_bodies, show_call, show_head
from ...timeline.steps.model_call import read_call
from ...timeline.steps.model_context import read_context
from ...timeline.steps.read_run import RunReader
from ...timeline.steps.step import Step
from ...timeline.steps.tracer import Price
from ..operations.open_store import open_store
from ..operations.restore_archived import find_archived_step, restore_runs
from .open_run import opened
from .step_and_time_arguments import StepName

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
    cost: bool = False
    """What model calls cost; a price table takes a third of a second to import."""


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
        price = _find_price() if options.cost else None
        reader = RunReader(store, info, price, texts=options.pattern is not None)
        steps: Iterable[Step | None] = reader.read()
        if options.follow:
            steps = _follow(store, reader)
        counts = Counts()
        if options.pattern is not None:
            steps = _matching(steps, options.pattern, counts)
        if options.graph is not None:
            for line in draw_graph(filter(None, steps), options.graph):
                click.echo(line)
        elif options.as_json:
            _print_json(store, reader, filter(None, steps))
        else:
            _print_page(store, reader, steps, counts, options)
    return 0


def _find_price() -> Price:
    """Give what prices a model call.

    Raises: PlayheadError, where no price table is installed.
    """
    from ...timeline.cost.ledger import price_call
    from ...timeline.reading.call_cost import has_prices

    if not has_prices():
        raise PlayheadError("no price table is installed", "pip install 'playhead[prices]'")
    return price_call


def _print_page(
    store: Store,
    reader: RunReader,
    steps: Iterable[Step | None],
    counts: Counts,
    options: ShowOptions,
) -> None:
    info = reader.info
    plays = f", plays {info.parent}" if info.parent else ""
    click.echo(fit(f"run {info.id}: {info.mode}, {info.status.value}{plays}", WIDTH))
    if info.agent:
        click.echo(fit(f"agent: {info.agent}", WIDTH))
    click.echo("    SEQ L  STEP" + "TOKENS   TIME".rjust(WIDTH - 15))
    if options.pattern is not None:  # what matches may be no line of the shorter page
        found = (step and with_match(step, options.pattern) for step in steps)
        lines = list_steps(found, Counts(), everything=True)
    else:
        lines = list_steps(steps, counts, everything=options.everything)
    shown = False
    for line in lines:
        click.echo(line)
        shown = True
    if options.pattern is not None and not shown:
        click.echo(fit(f"no step matches {options.pattern.pattern!r}; the run has:", WIDTH))
    click.echo()
    git = _find_git(store, info)
    for line in (
        *list_lanes(reader.lanes),
        *list_counts(counts),
        *_list_money(reader),
        *list_programs(reader.versions.all, git),
        *_list_outcome(store, reader),
    ):
        click.echo(line)


def _list_money(reader: RunReader) -> Iterator[str]:
    """Say what the model calls cost, if that was asked for: the sum that `playhead cost` gives."""
    if reader.price is not None:
        from ...timeline.cost.render import say_money
        from ...timeline.cost.sums import read_bill

        yield f"cost: {say_money(read_bill(reader.store, reader.info).spent)}"


def _list_outcome(store: Store, reader: RunReader) -> Iterator[str]:
    outcome = find_outcome(store.runs.reload(reader.info), reader.noted)
    if outcome.verdict is not Verdict.UNKNOWN or outcome.text:
        told = " ".join(filter(None, (outcome.by, outcome.text)))
        yield fit(f"outcome: {outcome.verdict.value}{f', {told}' if told else ''}", WIDTH)


def _find_git(store: Store, info: RunInfo) -> GitState | None:
    """Find where the repository of the agent stood when the run began."""
    manifest = store.folders.find(info)
    return manifest.git if manifest is not None else None


def _print_json(store: Store, reader: RunReader, steps: Iterable[Step]) -> None:
    """Print an object with the run, its steps, its lanes and what is known of all; a step as soon as it is there."""
    info = reader.info
    click.echo(f'{{"run": {json.dumps(info.id)}, "steps": [', nl=False)
    first = True
    for step in steps:
        click.echo(("" if first else ",") + "\n" + json.dumps(step_json(step)), nl=False)
        first = False
    whole = {
        "lanes": [lane_json(lane) for lane in reader.lanes],
        "programs": [program_json(*one) for one in reader.versions.all],
        "git": git_json(_find_git(store, info)),
        "outcome": outcome_json(find_outcome(store.runs.reload(info), reader.noted)),
    }
    click.echo(f"\n], {json.dumps(whole)[1:]}")


def _matching(
    steps: Iterable[Step | None], pattern: re.Pattern[str], counts: Counts
) -> Iterator[Step | None]:
    """Give the steps with a pattern, and count all."""
    for step in steps:
        if step is not None:
            counts.add(step)
        if step is None or find_match(step, pattern) is not None:
            yield step


def _follow(store: Store, reader: RunReader) -> Iterator[Step | None]:
    """Give the steps of a run until it has ended; None where the next is waited for."""
    while True:
        ended = store.runs.reload(reader.info).status is not RunStatus.OPEN
        yield from reader.read(end=ended)
        if ended:
            return
        yield None
        time.sleep(_EVERY_S)


def show_exchange(config: Config, run: str, step: StepName) -> int:
    """Print one exchange, decoded; one that is archived is read where it is.

    Raises: UnknownRun; StoreError for a step that the run does not have, naming its range and the nearest.
    """
    archived = find_archived_step(config, run, step.seq) if not step.part else None
    if archived is not None:
        _print_exchange(archived.exchange, None, run)
        return 0
    with opened(config, run) as (_, exchanges):
        exchange = exchanges.get(step.seq)
        if step.part:
            exchanges.get_part(exchange, step.part)
        _print_exchange(exchange, exchanges, run, step.part)
    return 0


def _print_exchange(
    exchange: Exchange, exchanges: Exchanges | None, run: str, only: int = 0
) -> None:
    """Print an exchange; of a WebSocket all model calls, or one."""
    how = f"playhead show {shell_word(run)} {exchange.seq} --raw"
    for line in show_head(exchange):
        click.echo(line)
    asked = [(0, exchange)] if exchange.websocket is None else []
    if exchanges is not None:
        asked = [one for one in exchanges.asked(exchange) if only in (0, one[0])]
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
