"""List where the agents of a store send things."""

import json
from collections.abc import Sequence

import click

from ...config import Config
from ...timeline.destinations.destinations import Destinations
from ...timeline.destinations.render import destination_json, render_destinations
from ..progress import ProgressBar
from .open_run import opened_runs


def list_destinations(config: Config, names: Sequence[str], since_ns: int, *, as_json: bool) -> int:
    """Print the hosts that runs sent something to since a time.

    names: of runs; without any all of the store.
    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    with opened_runs(config, names, since_ns) as (store, runs):
        found = Destinations(since_ns)
        with ProgressBar("reading") as progress:
            for done, run in enumerate(runs, 1):
                found.add(store, run)
                progress(done, len(runs))
    if as_json:
        click.echo(json.dumps([destination_json(one) for one in found.all()], indent=1))
    else:
        for line in render_destinations(found.all()):
            click.echo(line)
    return 0
