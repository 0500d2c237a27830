"""Look back at a run: the state at a step, what a context lost, and the last step before each effect."""

import json
import time

import click

from ...config import Config
from ...config.parse_values import show
from ...store import RunStatus, StoreError
from ...timeline.state.calls_before import Exchanges
from ...timeline.state.find_state import find_state, find_step_at
from ...timeline.state.lost_context import look_at
from ...timeline.state.render import (
    looked_json,
    render_lost,
    render_orphans,
    render_state,
    state_json,
)
from ..progress import ProgressBar
from ..standard_streams import print_status
from .open_run import opened
from .step_and_time_arguments import StepName, parse_moment


def show_state(
    config: Config,
    run: str,
    step: StepName | None,
    at: str | None,
    *,
    as_json: bool,
    full: bool,
) -> int:
    """Print the state of an agent at a step or at a time; without either at the last step.

    Raises: ValueError for what is no time; UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges):
        if step is None and at is not None:
            place = find_step_at(exchanges, _find_moment(exchanges, at))
            step = StepName(place.seq, place.part)
        elif step is None:
            print_status("playhead: this is the last step; SEQ or --at TIME names another one")
            step = StepName(exchanges.last_place.seq, exchanges.last_place.part)
        state = find_state(exchanges, *step)
        if as_json:
            click.echo(json.dumps(state_json(state), indent=1))
            return 0
        for line in render_state(state, full=full):
            click.echo(line)
    return 0


def _find_moment(exchanges: Exchanges, text: str) -> int:
    """Read a time, and see that the run had begun and not ended."""
    seqs, info = exchanges.seqs, exchanges.info
    ends = [exchanges.find(seq) for seq in (seqs[:1] + seqs[-1:])]
    known = [one for one in ends if one is not None]
    if not known:
        raise StoreError(f"run {info.id!r} holds no exchange", "nothing was recorded in it")
    first, last = known[0], known[-1]
    at_ns = parse_moment(text, first.started_ns)
    if at_ns < first.started_ns:
        raise StoreError(
            f"run {info.id!r} had not begun at {show(text)}: its first exchange, {first.seq}, is of {_clock(first.started_ns)}",
            "give a time since then, or +12s since it began",
        )
    ended_ns = max(last.started_ns + last.end_us * 1000, info.sealed_ns)
    if at_ns > ended_ns and info.status is not RunStatus.OPEN:
        raise StoreError(
            f"run {info.id!r} had ended before {show(text)}: it went from {_clock(first.started_ns)} to {_clock(ended_ns)},"
            f" and the nearest exchange is {last.seq}",
            "give a time between them, or +12s since it began",
        )
    return at_ns


def _clock(at_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ns / 1e9))


def show_context(
    config: Config, run: str, step: StepName | None, *, lost: bool, as_json: bool, full: bool
) -> int:
    """Print what a context lost, or what nothing explains in it.

    step: the one that is looked at; without it all.

    Raises: UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges):
        with ProgressBar("reading") as progress:
            seq, part = step if step is not None else (None, 0)
            found = look_at(exchanges, seq, part, progress)
        if as_json:
            click.echo(json.dumps([looked_json(one) for one in found], indent=1))
            return 0
        render = render_lost if lost else render_orphans
        for line in render(found, full=full):
            click.echo(line)
    return 0
