"""Show a run or an exchange as it was recorded: the rows of its log, and every byte."""

import json
from typing import Any

import click

from ...config import Config
from ...timeline import render_exchange, render_run
from ...timeline.lookup.missing_exchange_error import no_exchange
from ...timeline.reading.exchange_json import exchange_json
from ...timeline.receipts.exchange_rows import find_shown, rows
from ...timeline.rules.contract_violations import found_in
from ..operations.restore_archived import find_archived_step
from .open_run import opened
from .step_and_time_arguments import StepName


def show_raw(config: Config, run: str, step: StepName | None, *, as_json: bool) -> int:
    """Print the rows of a run, or one exchange in full.

    step: the exchange; one of its parts is all of it, since that is what was recorded.
    Raises: UnknownRun; StoreError for a step that the run does not have, naming its range and the nearest.
    """
    if step is not None and not step.part:
        archived = find_archived_step(config, run, step.seq)
        if archived is not None:
            if as_json:
                _print(exchange_json(archived.exchange, (), archived.contracts))
            else:
                click.echo(render_exchange(archived.exchange, (), archived.contracts))
            return 0
    with opened(config, run) as (store, exchanges):
        info = exchanges.info
        if step is None:
            listed = rows(store, info)
            _print(listed) if as_json else click.echo(render_run(info, listed))
            return 0
        if step.part:
            exchanges.get_part(exchanges.get(step.seq), step.part)
        found = find_shown(store, info, step.seq)
        if found is None:
            raise no_exchange(info.id, step.seq, exchanges.seqs)
        whose, exchange = found
        messages = store.messages.all(whose, exchange.seq)
        broken = found_in(store, info, step.seq)
        if as_json:
            _print(exchange_json(exchange, messages, broken))
        else:
            click.echo(render_exchange(exchange, messages, broken))
    return 0


def _print(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=True))
