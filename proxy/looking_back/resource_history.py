"""Say how a resource changed over runs, those in an archive among them."""

import difflib
import json
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import click

from ...config import Config
from ...store import RunInfo, Store, StoreError
from ...tape.canonical.canonical_url import same_url
from ...timeline.history.collect_exchanges import Collector
from ...timeline.history.find_resource_history import find_history
from ...timeline.history.render import history_json, render_history
from ...timeline.history.resource_state import Use
from ..operations.open_store import open_store
from ..operations.restore_archived import choose_runs, find_none_since, open_place, restore_runs
from ..progress import ProgressBar

_NEAREST = 3


def check_url(text: str) -> str:
    """Give a URL that names a resource.

    Raises: ValueError.
    """
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"{text[:80]!r} is no URL: expected one as https://shop.test/orders/7")
    return text


def show_history(
    config: Config, url: str, run: str | None, since_ns: int, agent: str | None, *, as_json: bool
) -> int:
    """Print how a resource changed.

    run: the one run that is looked at; else all that went on since a time.
    agent: a part of what is known of an agent: runs of others are left out.
    Raises: UnknownRun; StoreError, also where nothing asked for the URL.
    """
    if run is not None:
        restore_runs(config, run)
    collector = Collector(url)
    with open_store(config, readonly=True) as store, ProgressBar("reading") as progress:
        here, away = choose_runs(store, [run] if run is not None else [], since_ns)
        if since_ns and not here and not away:
            raise find_none_since(store, since_ns)
        runs = _of_agent([*here, *away], agent)
        uses: list[Use] = []
        for at, info in enumerate(runs, 1):
            uses += _uses(store, collector, info, named=run is not None)
            progress(at, len(runs))
    if all(one.is_below for one in uses):
        raise _never_asked(collector, run, since_ns)
    found = find_history(url, uses)
    if as_json:
        click.echo(json.dumps(history_json(found), indent=1))
        return 0
    for line in render_history(found):
        click.echo(line)
    return 0


def _of_agent(runs: Sequence[RunInfo], agent: str | None) -> list[RunInfo]:
    if agent is None:
        return list(runs)
    found = [run for run in runs if agent.lower() in run.agent.lower()]
    if found:
        return found
    known = ", ".join(sorted({repr(run.agent[:40]) for run in runs if run.agent})[:8])
    raise StoreError(
        f"no run of these is of an agent with {agent[:80]!r}",
        f"their agents are {known}" if known else "of none of them is the agent known",
    )


def _uses(store: Store, collector: Collector, info: RunInfo, *, named: bool) -> Iterator[Use]:
    if not info.is_only_in_archive:
        yield from collector.of_store(store, info, named=named)
    elif info.archived is not None and info.parent is None:
        yield from collector.of_archive(info, info.archived, open_place(info.archived.place))


def _never_asked(collector: Collector, run: str | None, since_ns: int) -> StoreError:
    near = difflib.get_close_matches(collector.url, list(collector.urls), _NEAREST, 0.6)
    where = (
        f"run {run!r}" if run is not None else f"no run {'since then' if since_ns else 'of these'}"
    )
    told = "did not ask for" if run is not None else "asked for"
    hint = f"the nearest are {', '.join(near)}" if near else "no URL that was asked for is near"
    if any(same_url(one, collector.url) for one in near):
        hint = "requests for it reached nobody: they were refused, stubbed or answered from a tape"
    return StoreError(f"{where} {told} {collector.url[:200]!r}", hint)
