"""Compare two runs: where they first differ, and what follows from that."""

import json
from time import thread_time

import click

from ...config import Config
from ...tape.canonical.canonical_request import rules_of
from ...timeline.diff.acts import read_acts
from ...timeline.diff.compare import compare_acts
from ...timeline.diff.diff_json import diff_json
from ...timeline.diff.differing_json_paths import Places, find_places
from ...timeline.diff.render import Names, render_diff
from ...timeline.diff.row import Row
from ...timeline.state.calls_before import Exchanges
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from .colour import find_paint


def diff_runs(config: Config, first: str, second: str, *, as_json: bool, everything: bool) -> int:
    """Print how two runs differ; give 1 where they do.

    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    restore_runs(config, first, second)
    with open_store(config, readonly=True) as store:
        runs = store.runs.get(first), store.runs.get(second)
        sides = Exchanges(store, runs[0]), Exchanges(store, runs[1])
        rules = rules_of(config, thread_time)
        compared = compare_acts(*(read_acts(side, rules) for side in sides))
        names = Names(runs[0].id, runs[1].id)

        def find(row: Row) -> Places:
            return find_places(row, *sides, rules)

        if as_json:
            click.echo(json.dumps(diff_json(names, compared, find), indent=1))
        else:
            for line in render_diff(names, compared, find, find_paint(), everything=everything):
                click.echo(line)
    return 1 if compared.divergence is not None else 0
