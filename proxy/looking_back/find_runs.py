"""List the runs in which something is found."""

import json
import re
import time

import click

from ...config import Config
from ...tape.counted import counted
from ...timeline.fleet.find_runs import Found, grep_runs, trace_runs
from ...timeline.show.fit import fit
from ..operations.open_store import open_store
from ..operations.restore_archived import choose_runs, fetch_since, find_none_since
from ..progress import ProgressBar

_WIDTH = 80
_SEQS = 8


def list_found(
    config: Config, wanted: re.Pattern[str] | str, since_ns: int, *, as_json: bool
) -> int:
    """Print the runs with a step that matches a pattern, or with a request of a trace; give 1 where there is none.

    Raises: LogCorrupt; StoreError.
    """
    fetch_since(config, since_ns)
    with open_store(config, readonly=True) as store:
        runs, _ = choose_runs(store, (), since_ns)
        none_since = "" if runs or not since_ns else str(find_none_since(store, since_ns))
        with ProgressBar("searching") as progress:
            if isinstance(wanted, str):
                found = trace_runs(store, runs, wanted, progress)
            else:
                found = list(grep_runs(store, runs, wanted, progress))
    if as_json:
        click.echo(json.dumps([_row(one) for one in found], indent=1))
    else:
        for one in found:
            _print(one)
    if not found and not as_json:
        click.echo(none_since or f"found in none of {counted(len(runs), 'run')}")
    return 0 if found else 1


def _print(one: Found) -> None:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.run.created_ns / 1e9))
    seqs = ", ".join(map(str, one.seqs[:_SEQS])) + (" …" if len(one.seqs) > _SEQS else "")
    click.echo(f"{began} {fit(f'{one.run.id}: {seqs}', _WIDTH - 17)}")
    if one.excerpt:
        click.echo(f"  {fit(one.excerpt, _WIDTH - 2)}")


def _row(one: Found) -> dict[str, object]:
    return {
        "run": one.run.id,
        "mode": one.run.mode,
        "created_ns": one.run.created_ns,
        "seqs": list(one.seqs),
        "excerpt": one.excerpt or None,
    }
