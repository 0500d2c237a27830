"""List the runs that are like one."""

import json
import time

import click

from ...config import Config
from ...store import RunInfo, RunStatus, Store, StoreError
from ...tape.shell_words import shell_word
from ...timeline.outcomes.outcome import Outcome, read_outcome
from ...timeline.outcomes.similar_runs import Like, find_similar, read_grams
from ...timeline.show.fit import fit
from ..operations.open_store import open_store
from ..operations.restore_archived import fetch_since, restore_runs
from ..progress import ProgressBar

_WIDTH = 80


def list_similar(config: Config, name: str, *, ok: bool, most: int, as_json: bool) -> int:
    """Print the recordings that are like a run, the nearest first.

    ok: those alone that ended well.
    Raises: UnknownRun; LogCorrupt; StoreError, where the run asked no model.
    """
    restore_runs(config, name)
    fetch_since(config, 0)
    with open_store(config, readonly=True) as store:
        run = store.runs.get(name)
        grams = read_grams(store, run)
        if not grams:
            raise StoreError(
                f"run {name!r} asked no model that is known, so it is like no other",
                f"`playhead show {shell_word(name)}` lists what it did",
            )
        found = []
        with ProgressBar("reading") as progress:
            others = _others(store, run, ok=ok)
            for done, (other, _) in enumerate(others, 1):
                found.append((other, read_grams(store, other)))
                progress(done, len(others))
        outcomes = {other.number: outcome for other, outcome in others}
    ranked = find_similar(grams, [one for one in found if one[1]])[:most]
    if as_json:
        click.echo(json.dumps([_row(one, outcomes[one.run.number]) for one in ranked], indent=1))
        return 0
    if not ranked:
        click.echo("no other recording asked a model" + (" and ended well" if ok else ""))
        return 0
    click.echo("LIKE OUTCOME  BEGAN            RUN")
    for one in ranked:
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.run.created_ns / 1e9))
        verdict = outcomes[one.run.number].verdict.value
        head = f"{one.likeness:.2f} {verdict:<8} {began} "
        click.echo(head + fit(one.run.id, _WIDTH - len(head)))
    return 0


def _others(store: Store, run: RunInfo, *, ok: bool) -> list[tuple[RunInfo, Outcome]]:
    found = []
    for other in store.runs.all():
        is_recording = other.mode == "record" and other.status is not RunStatus.OPEN
        is_recording = is_recording and not other.is_explored
        if not is_recording or other.is_only_in_archive or other.number == run.number:
            continue
        outcome = read_outcome(store, other)
        if outcome.is_ok or not ok:
            found.append((other, outcome))
    return found


def _row(like: Like, outcome: Outcome) -> dict[str, object]:
    return {
        "run": like.run.id,
        "likeness": round(like.likeness, 4),
        "outcome": outcome.verdict.value,
        "by": outcome.by or None,
        "text": outcome.text or None,
        "created_ns": like.run.created_ns,
        "exchanges": like.run.exchanges,
    }
