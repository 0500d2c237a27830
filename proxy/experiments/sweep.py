"""`playhead sweep`: run variants of one exchange, each several times over the same prefix, and count how they end.

Each run is noted as it begins and as it ends (`progress_journal.py`), so that the next call with the same file does what is left. How a run
ended counts for as long as its variant, its tape, its command and what judges it are as they were; what it used always does.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...config import Config
from ...config.experiments.sweep_file import SweepFile, Variant, load_sweep
from ...store import RunInfo, Store, StoreError
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import RequestClass
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...tape.splicing.bisect_answers import Standing
from ...timeline.receipts.command.command_end import find_command
from ..errors import EngineError
from ..operations.find_tape import choose_recording
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_tape
from ..run.launcher import ContainerHost, start_with_own_files
from ..run_again.announcements import (
    NOTHING_LEAVES,
    announce_command,
    announce_live,
    announce_routes,
)
from ..run_again.branch import (
    CapNames,
    Caps,
    Spent,
    confirm,
    expected_calls,
    expected_usd,
    find_caps,
    find_tape,
    limit_run,
    require_command,
    reserve,
)
from ..run_again.branch_price import Price, find_price
from ..run_again.declare_branch import Asked, declare
from ..standard_streams import print_status
from .budget import Budget
from .journal.inputs import hash_parts, read_inputs
from .journal.journaled_runs import UNFINISHED, describe_run, note_and_run, read_row, settle
from .journal.progress_journal import SUFFIX, Journal
from .judge import Judge, make_judge
from .outcome_table import Row, render_table, to_json
from .run_command_once import Place, read_done, run_once
from .workers import Done, Workers

_CAP_NAMES = CapNames("cap", "max_calls", "live or routes")
"""Keys of a sweep's file."""
_AT_ONCE = 4
"""Runs at the same time by default, where there are as many cores."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A variant that can be run."""

    name: str
    declared: Branch
    key: str
    """Tells it from others, and from what it was before it was changed."""
    price: Price


def sweep(
    config: Config,
    file: Path,
    command: Sequence[str],
    container_host: ContainerHost | None,
    config_file: Path,
    *,
    parallel: int | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Run what is left of a sweep; give 0 once all of it is done, and 121 where a cap has ended it.

    Raises: PlayheadError, before anything runs, or where a run cannot be judged.
    """
    start_with_own_files(config, container_host)
    _require_file(config, file)
    wanted = load_sweep(file)
    command = _choose_command(config, wanted, command)
    judge = make_judge(wanted.judged_by, by_label=wanted.label)
    restore_tape(config, wanted.run)
    named = [one for each in wanted.variants for one in _list_files(each)]
    inputs = read_inputs(config, command, judge.check, [config_file, file, *named])
    with open_store(config, readonly=True) as store:
        tape = find_tape(store, wanted.run)
        told = (command, judge.text)
        variants = [_prepare(store, config, tape, wanted, one, told) for one in wanted.variants]
        recorded = find_command(store.events.all(tape))
    at_once = parallel or wanted.parallel or min(_AT_ONCE, os.cpu_count() or 1)
    notes = file.with_name(file.name + SUFFIX)
    hint = "wait for it, or copy the file of variants"
    with Journal(notes, f"another sweep works on {notes}", hint) as journal:
        settle(config, journal)
        journal.depend(inputs)
        left = _find_left(variants, wanted.times, journal)
        budget = _make_budget(wanted, variants, at_once, journal)
        for line in _announce(tape, wanted, variants, left, budget, judge, (command, recorded)):
            print_status(line)
        for line in journal.say_left(_find_ended(variants, journal)):
            print_status(line)
        used_up = budget.is_used_up and any(one.declared.sends for one in left)
        if left and any(one.declared.sends for one in variants) and not yes and not used_up:
            confirm()
        made = _Sweep(
            config, Place(tape.id, command, container_host, config_file), judge, budget, journal
        )
        undone = len(left) if used_up else made.run(left, at_once)
        samples = any(one.declared.sends for one in variants)
        rows = [_count(one, journal, samples=samples) for one in variants]
    if as_json:
        click.echo(json.dumps(to_json(tape.id, wanted.at, rows, undone, budget.spent), indent=1))
    else:
        for line in render_table(rows, judge.text):
            click.echo(line)
    if used_up:
        print_status(f"playhead: nothing was run, the cap is used up; {undone} runs are left: {budget.show()}; go on with a higher cap and the same file")  # fmt: skip
    elif undone:
        print_status(f"playhead: {undone} runs are left: {budget.show()}; go on with a higher cap and the same file")  # fmt: skip
    return ExitCode.DIVERGED if undone else 0


def _require_file(config: Config, file: Path) -> None:
    """Raise EngineError where a file is not there, saying what it would hold; the name of a run is told as one."""
    if file.exists():
        return
    run = None
    with contextlib.suppress(StoreError), open_store(config, readonly=True) as store:
        run = store.runs.find(choose_recording(store, str(file))[0])
    named = "refund" if run is None else str(run.id)
    wrong = "no such file" if run is None else "a run, and no file"
    raise EngineError(
        f"{file}: {wrong}; expected a YAML file of variants",
        f"write such a file, as: {{run: {json.dumps(named)}, at: 1, variants: [{{name: as it was}}]}}",
    )


def _choose_command(config: Config, wanted: SweepFile, command: Sequence[str]) -> Sequence[str]:
    if command and wanted.command:
        raise EngineError(
            "the file has a command, and the command line too; expected one of them",
            "nothing was run",
        )
    chosen = command or wanted.command
    require_command(config, wanted.run, chosen)
    return chosen


def _prepare(
    store: Store,
    config: Config,
    tape: RunInfo,
    wanted: SweepFile,
    variant: Variant,
    told: tuple[Sequence[str], str],
) -> Prepared:
    """Check a variant, and read what it names. Raises: EngineError."""
    live, routes = variant.live or wanted.live, variant.routes or wanted.routes
    reason = (
        (variant.reason or wanted.reason) if live or routes or variant.reason else wanted.reason
    )
    asked = Asked(
        wanted.at,
        answer=variant.answer,
        system=variant.system,
        request_change=variant.request_change,
        live=live,
        routes=routes,
        answers=variant.answers,
        reason=reason,
    )
    try:
        declared = declare(store, tape, config, asked)
        # A variant whose answers the tape had would be no sample of the model, and could not be compared with the others.
        declared = replace(declared, afresh=declared.sends)
    except EngineError as error:
        raise EngineError(f"variant {variant.name!r}: {error}", error.hint) from error
    parts = (tape.id, tape.created_ns, *_tell(declared), *told[0], "", told[1])
    price = find_price(store, tape, declared)
    return Prepared(variant.name, declared, hash_parts(*parts, size=8), price)


def _tell(declared: Branch) -> Iterator[object]:
    """Give what tells a branch from others."""
    yield from (declared.at, declared.afresh)
    yield from ((rule.match.text, kind.value) for rule, kind in declared.live)
    yield from ((route.match.text, route.place) for route in declared.routes)
    yield from ((one.match.text, one.answer) for one in declared.answers)
    yield declared.answer
    yield declared.change


def _list_files(variant: Variant) -> Iterator[Path]:
    """Give the files of a variant, whose contents are a part of its key."""
    yield from filter(
        None, (variant.answer, variant.system, variant.request_change, variant.answers)
    )


def _find_ended(variants: Sequence[Prepared], journal: Journal) -> list[dict[str, Any]]:
    """List the ended runs of these variants, also those whose files are other ones now."""
    keys = {one.key for one in variants}
    return [row for row in journal.rows if row["key"] in keys and row["standing"] != UNFINISHED]


def _find_left(variants: Sequence[Prepared], times: int, journal: Journal) -> list[Prepared]:
    """List the runs that are still to be made: the first of each variant, then the second of each."""
    ended = _find_ended(variants, journal)
    done = Counter(row["key"] for row in ended if journal.counts(row))
    missing = [max(0, times - done[one.key]) for one in variants]
    return [
        one
        for turn in range(max(missing, default=0))
        for one, count in zip(variants, missing, strict=True)
        if turn < count
    ]


def _make_budget(
    wanted: SweepFile, variants: Sequence[Prepared], at_once: int, journal: Journal
) -> Budget:
    """Give the caps, and what earlier calls have used of them. Raises: EngineError."""
    dearest = max(variants, key=lambda one: (one.declared.sends, one.price.calls))
    current = {one.key for one in variants}
    # What was stopped is run again within the same cap: otherwise each call of the file would raise it.
    gone = [
        row
        for row in journal.rows
        if row["standing"] != UNFINISHED and not (row["key"] in current and journal.counts(row))
    ]
    times = len(variants) * wanted.times + len(gone)
    given = Caps(wanted.cap, wanted.max_calls)
    caps = find_caps(given, dearest.declared, dearest.price, times, _CAP_NAMES)
    priced = max(variants, key=lambda one: (one.declared.sends, one.price.dearest)).price
    budget = Budget(
        caps, at_once, expected_calls(dearest.price), expected_usd(priced), priced.dearest
    )
    for row in journal.rows:  # of variants that are gone, too: their calls have left
        read_row(row).add_to(budget.spent)
    return budget


def _announce(
    tape: RunInfo,
    wanted: SweepFile,
    variants: Sequence[Prepared],
    left: Sequence[Prepared],
    budget: Budget,
    judge: Judge,
    commands: tuple[Sequence[str], Sequence[str]],
) -> Iterator[str]:
    """Say what is going to happen, before it does."""
    command, recorded = commands
    whole = len(variants) * wanted.times
    done = f", {whole - len(left)} of them done already" if len(left) < whole else ""
    yield (
        f"playhead: sweep of {tape.id!r} at {wanted.at}: {len(variants)} variants, each {wanted.times} times,"
        f" {whole} runs{done}; judged by {judge.text}"
    )
    yield "  earlier requests are answered from the tape, and never sent again"
    live = {
        (kind, rule.match.host): (rule, kind)
        for one in variants
        for rule, kind in one.declared.live
    }
    yield from announce_live(live.values())
    if any(kind is RequestClass.INFERENCE for _, kind in live.values()):
        yield f"  from {wanted.at} on the model is asked in each run, also what the tape answers"
    routes = {route.match.text: route for one in variants for route in one.declared.routes}
    yield from announce_routes(routes.values())
    if live or routes:
        priced = max(variants, key=lambda one: one.price.calls).price
        yield f"  price: from there on the tape has of these {priced.show(len(left))}"
        yield f"  cap: {budget.caps.show()}"
        if budget.spent.calls or budget.spent.usd:
            yield f"  used with this file so far: {budget.show()}"
    else:
        yield NOTHING_LEAVES
    yield from announce_command(command, recorded)


class _Sweep:
    """The runs of one call."""

    def __init__(
        self, config: Config, place: Place, judge: Judge, budget: Budget, journal: Journal
    ) -> None:
        self._config, self._place, self._judge = config, place, judge
        self._budget, self._journal = budget, journal
        self._by_name: dict[int, Prepared] = {}
        self._begun: dict[int, int] = {}
        """By name, the number of a run in the journal."""

    def run(self, left: Sequence[Prepared], at_once: int) -> int:
        """Make runs; give how many are left, where a cap has ended it."""
        waiting = list(reversed(list(enumerate(left))))
        undone = 0
        with Workers(at_once) as workers:
            while waiting or workers.running:
                while waiting and workers.has_room and self._start(workers, *waiting[-1]):
                    waiting.pop()
                if not workers.running:
                    break  # a cap is reached
                undone += not self._take(workers.wait())
        return undone + len(waiting)

    def _start(self, workers: Workers, number: int, variant: Prepared) -> bool:
        part = self._budget.give(number) if variant.declared.sends else Caps()
        if part is None:
            return False
        self._by_name[number] = variant
        limits = limit_run(self._config.limits, part, Spent())
        config = replace(self._config, limits=limits)
        declared = reserve(variant.declared, self._budget.caps, variant.price)
        work = partial(run_once, config, self._place, declared)
        if variant.declared.sends:
            begun = self._begun[number] = self._journal.number()
            told = {"begun": begun, "variant": variant.name, "key": variant.key}
            work = partial(note_and_run, work, config, self._journal, told, part)
        workers.start(number, work)
        return True

    def _take(self, done: Done) -> bool:
        """Note a run that has ended; say whether it came to its own end."""
        ran, variant = read_done(done), self._by_name[done.name]
        self._budget.take(done.name, ran)
        judged = self._judge.judge(self._config, ran, done.files, ran.no_result)
        standing = UNFINISHED if ran.limited else judged.standing.value
        begun = self._begun.get(done.name)
        self._journal.add(
            {
                **({} if begun is None else {"begun": begun}),
                "variant": variant.name,
                "key": variant.key,
                "standing": standing,
                "why": judged.why,
                **describe_run(ran),
            }
        )
        print_status(f"  {variant.name}: {standing} ({one_line(judged.why)}), {ran.run!r}")
        return not ran.limited


def _count(variant: Prepared, journal: Journal, *, samples: bool) -> Row:
    """Count how the runs of a variant ended.

    samples: whether anything of the sweep goes live, so that runs which send nothing are not to be compared with the others.
    """
    found = [
        row
        for row in journal.rows
        if row["key"] == variant.key and (row["standing"] == UNFINISHED or journal.counts(row))
    ]
    spent = Spent()
    for row in found:
        read_row(row).add_to(spent)
    ended = [row for row in found if row["standing"] != UNFINISHED]
    count = Counter(str(row["standing"]) for row in ended)
    return Row(
        variant.name,
        count[Standing.GOOD.value],
        count[Standing.BAD.value],
        count[Standing.UNKNOWN.value],
        spent,
        tuple(str(row["run"]) for row in ended),
        Counter(str(row["why"]) for row in ended).most_common(1)[0][0] if ended else "",
        is_sampled=spent.calls > 0 or not samples,
    )
