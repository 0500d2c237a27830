"""What runs cost, and what replays saved."""

import json
from collections.abc import Iterator, Sequence

import click

from ...config import Config
from ...store import RunInfo, Store
from ...timeline.cost.ledger import Entry, may_lack_calls, read_ledger
from ...timeline.cost.render import bill_json, render_bill
from ...timeline.cost.sums import Bill
from ...timeline.reading.call_cost import has_prices
from ...timeline.state.calls_before import Exchanges
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs
from ..progress import ProgressBar
from ..standard_streams import print_status
from .open_run import opened_runs


def show_cost(
    config: Config,
    names: Sequence[str],
    since_ns: int,
    by: str,
    *,
    as_json: bool,
    everything: bool,
) -> int:
    """Print what runs cost.

    names: of runs; without any those since a time.
    Raises: UnknownRun; LogCorrupt; StoreError.
    """
    restore_runs(config, *_name_replays(config, names))
    with opened_runs(config, names, since_ns) as (store, runs):
        bill = _read_bill(store, runs, since_ns, by, of_tapes=bool(names))
    if as_json:
        click.echo(json.dumps(bill_json(bill), indent=1))
    else:
        for line in render_bill(bill, everything=everything):
            click.echo(line)
    if bill.spent.unpriced and not has_prices():
        print_status(
            "playhead: no price table is installed: pip install 'playhead[prices]' for money"
        )
    elif bill.spent.unpriced:
        print_status(
            "playhead: prices are those of the package genai-prices, for answers that state their tokens: a newer one may have"
            " a new model's (pip install -U genai-prices); a model of your own has none, and only its tokens are counted"
        )
    return 0


def _name_replays(config: Config, names: Sequence[str]) -> list[str]:
    """Name the replays of runs: what they saved is counted, too."""
    with open_store(config, readonly=True) as store:
        numbers = {store.runs.get(name).number for name in names}
        return [run.id for run in store.runs.all() if run.parent_number in numbers]


def _read_bill(
    store: Store, runs: list[RunInfo], since_ns: int, by: str, *, of_tapes: bool
) -> Bill:
    bill = Bill(by)
    numbers = {run.number for run in runs}
    replays = []
    if of_tapes:  # what replays of them saved is theirs, too
        replays = [
            run
            for run in store.runs.all()
            if run.parent_number in numbers and run.number not in numbers
        ]
    with ProgressBar("counting") as progress:
        for done, run in enumerate((*runs, *replays), 1):
            exchanges = Exchanges(store, run)
            found = _entries(exchanges, since_ns, lanes=by == "lane")
            if run.number in numbers:
                bill.add(run.id, found, is_cut=may_lack_calls(exchanges))
            else:
                bill.add_saved(found)
            progress(done, len(runs) + len(replays))
    return bill


def _entries(exchanges: Exchanges, since_ns: int, *, lanes: bool) -> Iterator[Entry]:
    entries = read_ledger(exchanges, lanes=lanes)
    return (one for one in entries if one.at_ns >= since_ns)
