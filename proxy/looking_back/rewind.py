"""List the last step before each effect of a run: the places to go back to."""

import json

import click

from ...config import Config
from ...tape.shell_words import shell_word
from ...timeline.receipts.gaps import read_gaps
from ...timeline.show.fit import fit
from ...timeline.show.listing import WIDTH
from ...timeline.steps.before_effects import BeforeEffect, find_before_effects
from ...timeline.steps.read_run import RunReader
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..standard_streams import print_status


def rewind_run(config: Config, run: str, *, as_json: bool) -> int:
    """Print the last model call before each effect, and the effect.

    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        info = store.runs.get(run)
        found = find_before_effects(RunReader(store, info).read())
        gaps = read_gaps(store, info)
    for line in gaps.lines():
        print_status(f"playhead: {line}")
    if as_json:
        click.echo(json.dumps([one.to_json() for one in found], indent=1))
        return 0
    if not found:
        known = " outside of the gap" if gaps.rows else ""
        click.echo(
            f"it has no effects{known}: nothing that it asked for may have changed the world"
        )
    for one in found:
        for line in _lines(one, info.id):
            click.echo(line)
    return 0


def _lines(one: BeforeEffect, run: str) -> list[str]:
    head = f"{one.effect} {one.name} {one.outcome}"
    lines = [fit(f"effect {head}", WIDTH)]
    lines += [f"  {fit(f'[{mark}]', WIDTH - 2)}" for mark in one.marks]
    if one.seq is None:
        return [*lines, "  no model call came before it"]
    why = (
        f"asked for by {one.tool}, {one.evidence}" if one.tool else "the last model call before it"
    )
    lines.append(f"  {fit(f'before it: {one.step} ({why})', WIDTH - 2)}")
    if one.said:
        lines.append(f"    {fit(one.said, WIDTH - 4)}")
    lines.append(f"    {fit(f'playhead state {shell_word(run)} {one.step}', WIDTH - 4)}")
    return lines
