"""Say where a value of a run came from, and why its prompt cache missed."""

import json

import click

from ...config import Config
from ...timeline.blame.find_origin import find_blame
from ...timeline.blame.render import blame_json, render_blame
from ...timeline.cache.prompt_cache_misses import find_misses
from ...timeline.cache.render import miss_json, render_misses
from ...timeline.reading.made_answers import find_made
from ..progress import ProgressBar
from .open_run import opened
from .step_and_time_arguments import StepName


def show_blame(
    config: Config, run: str, step: StepName, place: str, value: str | None, *, as_json: bool
) -> int:
    """Print where the value at a place of an exchange came from.

    Raises: UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges):
        found = find_blame(exchanges, step.seq, place, value, step.part)
        made = find_made(exchanges.events())
    if as_json:
        click.echo(json.dumps(blame_json(found, made), indent=1))
        return 0
    for line in render_blame(found, exchanges.info.id, made):
        click.echo(line)
    return 0


def show_cache(config: Config, run: str, *, as_json: bool) -> int:
    """Print what became of the prompt cache in each model call of a run.

    Raises: UnknownRun; StoreError.
    """
    with opened(config, run) as (_, exchanges), ProgressBar("reading") as progress:
        found = find_misses(exchanges, progress)
    if as_json:
        click.echo(json.dumps([miss_json(one) for one in found], indent=1))
        return 0
    for line in render_misses(found, exchanges.info.id):
        click.echo(line)
    return 0
