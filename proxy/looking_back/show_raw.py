"""Show a run or an exchange as it was recorded: the rows of its log, and every byte."""

import json
from typing import Any

import click

from ...config import Config
from ...timeline import render_exchange, render_run
from ...timeline.reading.exchange_json import exchange_json
from ...timeline.receipts.exchange_rows import find_shown, rows
from ...timeline.rules.contracts import found_in
from ..operations.open_store import open_store
from ..operations.restore_archived import find_archived_step, restore_runs
from .show import no_such_exchange


def show_raw(config: Config, run: str, seq: int | None, *, as_json: bool) -> int:
    """Print the rows of a run, or one exchange in full.

    Raises: UnknownRun; StoreError for a seq that the run does not have, naming its range and the nearest.
    """
    if seq is not None and (step := find_archived_step(config, run, seq)) is not None:
        if as_json:
            _print(exchange_json(step.exchange, (), step.contracts))
        else:
            click.echo(render_exchange(step.exchange, (), step.contracts))
        return 0
    restore_runs(config, run)
    with open_store(config, readonly=True) as opened:
        info = opened.runs.get(run)
        if seq is None:
            listed = rows(opened, info)
            _print(listed) if as_json else click.echo(render_run(info, listed))
            return 0
        found = find_shown(opened, info, seq)
        if found is None:
            raise no_such_exchange(opened, info, seq)
        whose, exchange = found
        messages = opened.messages.all(whose, exchange.seq)
        broken = found_in(opened, info, seq)
        if as_json:
            _print(exchange_json(exchange, messages, broken))
        else:
            click.echo(render_exchange(exchange, messages, broken))
    return 0


def _print(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=True))
