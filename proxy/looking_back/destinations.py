"""List where the agents of a store send things."""

import json
from collections.abc import Sequence

import click

from ...config import Config
from ...store import StoreError
from ...timeline.destinations.destinations import Destinations
from ...timeline.destinations.render import destination_json, render_destinations
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..progress import ProgressBar
from ..standard_streams import print_status
from .since import choose_runs


def list_destinations(config: Config, names: Sequence[str], since_ns: int, *, as_json: bool) -> int:
    """Print the hosts that runs sent something to since a time.

    names: of runs; without any all of the store.
    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    if names:
        restore_runs(config, *names)
    with open_store(config, readonly=True) as store:
        runs, away = choose_runs(store, names, since_ns)
        if not runs:
            raise StoreError("there is no run to look at", "record one with: playhead record")
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
    if away:
        print_status(f"playhead: {len(away)} archived runs are not looked at")
    return 0
