"""`playhead explore`: run a command against its tape again and again, each time with other faults, until it does what it never is to do.

Which faults those are follows from the seed and the tape, and from nothing else. The first seed that breaks something is made as small
as it can be, and kept: as a file that says the faults, and as a tape that gives them again.
"""

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import click

from ...config import Config
from ...config.experiments.fault_schedule_file import load_schedule
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import rules_of
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Exchange, Seq
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...tape.schedules.draw_schedule import draw, find_smaller
from ...tape.schedules.fault_places import check_fault, find_places
from ...tape.schedules.remaining_faults import RunningSchedule, after
from ...tape.schedules.scheduled_fault import FaultWord, Schedule, ScheduledFault
from ...tape.shell_words import shell_word
from ...tape.splicing.bisect_answers import Standing
from ...timeline.lookup.endpoints import find_order, read_requests
from ..errors import EngineError
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_tape
from ..run.launcher import ContainerHost, start_with_own_files
from ..run_again.announcements import NOTHING_LEAVES, announce_command, announce_live
from ..run_again.branch import (
    Caps,
    Spent,
    expected_calls,
    expected_usd,
    find_caps,
    find_tape,
    limit_run,
    reserve,
    spent_json,
)
from ..run_again.branch_price import Price, find_price
from ..run_again.declare_branch import Asked, declare
from ..standard_streams import print_status
from .budget import Budget
from .invariants import find_broken
from .journal.inputs import read_inputs
from .journal.journaled_runs import NotedRuns, begin_noted
from .judge import Judge, Judged
from .run_command_once import Place, Ran, read_done, run_once
from .save_faulted_run import keep_schedule, keep_tape
from .workers import Done, Files, Work, Workers

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of an exploration."""

    run: str
    seeds: int
    judge: Judge
    """Its check is one of the invariants; without a check the exit code is none."""
    late_s: float
    words: tuple[FaultWord, ...] = ()
    """Faults to draw from; empty for all."""
    schedule: Path | None = None
    """The schedule to run instead of drawing any."""
    live: tuple[str, ...] = ()
    reason: str | None = None
    parallel: int | None = None
    yes: bool = False
    keep: bool = True
    caps: Caps = field(default_factory=Caps)
    anew: bool = False
    """Whether what an earlier call did counts for nothing."""


class _Prepared(NamedTuple):
    """All that is known before anything runs."""

    tape: RunInfo
    places: list[ScheduledFault]
    declared: Branch
    price: Price
    given: Schedule | None
    late_s: float


class Tried(NamedTuple):
    """A schedule that was run, and what came of it."""

    seed: int | None
    schedule: Schedule
    ran: Ran
    broken: tuple[str, ...]
    """What it did that it never is to do."""
    untested: str = ""
    """Why it tells nothing; empty where it does."""


def explore(
    config: Config,
    wanted: Wanted,
    command: Sequence[str],
    container_host: ContainerHost | None,
    config_file: Path,
    *,
    as_json: bool,
) -> int:
    """Explore; give 1 where something was broken, 0 where nothing was, and 125 where nothing was tested.

    Raises: PlayheadError, before anything runs, or where the run breaks something without any fault.
    """
    start_with_own_files(config, container_host)
    restore_tape(config, wanted.run)
    with open_store(config, readonly=True) as store:
        prepared = _prepare(store, config, wanted)
    at_once = wanted.parallel or min(_AT_ONCE, os.cpu_count() or 1)
    runs = wanted.seeds + 1
    caps = find_caps(wanted.caps, prepared.declared, prepared.price, runs)
    price = prepared.price
    budget = Budget(caps, at_once, expected_calls(price), expected_usd(price), price.dearest)
    place = Place(prepared.tape.id, command, container_host, config_file)
    notes = None
    if prepared.declared.sends:
        parts = _tell(prepared, wanted, command)
        inputs = read_inputs(config, command, wanted.judge.check, [config_file])
        notes = NotedRuns(config, "explore", parts, inputs, anew=wanted.anew)
    lines = _announce(prepared, wanted, budget, command)
    with begin_noted(notes, lines, yes=wanted.yes) as noted:
        if noted is not None:
            budget.spent = noted.spent
        made = _Exploration(config, wanted, prepared, place, budget, noted)
        made.run(at_once)
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=1))
    else:
        for line in made.render():
            click.echo(line)
    if made.found is not None:
        return ExitCode.FAILED
    return 0 if made.tested else ExitCode.UNTESTABLE


def _tell(prepared: _Prepared, wanted: Wanted, command: Sequence[str]) -> Iterator[object]:
    """Give what decides what the runs do; schedules aside."""
    yield from (prepared.tape.id, prepared.tape.created_ns, prepared.late_s)
    yield from ((rule.match.text, kind.value) for rule, kind in prepared.declared.live)
    yield from (wanted.judge.text, *command)


def _prepare(store: Store, config: Config, wanted: Wanted) -> _Prepared:
    """Find where faults can be laid. Raises: EngineError; ConfigError."""
    tape = find_tape(store, wanted.run)
    before = find_order(read_requests(store, tape), config.classes)
    places = find_places(_read_all(store, tape), before, rules_of(config, thread_time))
    if not places:
        raise EngineError(
            f"run {tape.id!r} has no answer that can meet a fault", "record one that is answered"
        )
    given, late_s = None, wanted.late_s
    if wanted.schedule is not None:
        given, late_s = _read_schedule(wanted.schedule, tape, places)
    if wanted.words:
        chosen = [one for one in places if one.word in wanted.words]
        if not chosen:
            raise EngineError(
                f"run {tape.id!r} has no place for {' or '.join(wanted.words)}",
                f"it has some for: {', '.join(dict.fromkeys(one.word for one in places))}",
            )
        places = chosen
    first = min(after(one) for one in places)
    declared = declare(store, tape, config, Asked(first, live=wanted.live, reason=wanted.reason))
    price = find_price(store, tape, declared)
    return _Prepared(tape, places, declared, price, given, late_s)


def _read_all(store: Store, tape: RunInfo) -> Iterator[Exchange]:
    for seq in store.exchanges.seqs(tape):
        found = store.exchanges.find(tape, seq)
        if found is not None:
            yield found


def _read_schedule(
    path: Path, tape: RunInfo, places: Sequence[ScheduledFault]
) -> tuple[Schedule, float]:
    """Read a schedule that was kept, and how late a late answer is there, in seconds. Raises: EngineError; ConfigError."""
    told = load_schedule(path)
    if told.run != tape.id:
        raise EngineError(
            f"{path} is of run {told.run!r}, and not of {tape.id!r}",
            f"explore {told.run!r} with it",
        )
    found = []
    for one in told.faults:
        try:
            word = FaultWord(one.kind)
        except ValueError:
            raise EngineError(
                f"{path}: {one.kind[:40]!r} is no fault; expected one of {', '.join(FaultWord)}",
                "nothing was run",
            ) from None
        other = Seq(one.other) if one.other is not None else None
        fault = ScheduledFault(Seq(one.seq), word, other, one.share)
        try:
            check_fault(fault, places)
        except ValueError as error:
            raise EngineError(f"{path}: run {tape.id!r} {error}", "nothing was run") from error
        found.append(fault)
    return tuple(sorted(found)), told.late_s


def _announce(
    prepared: _Prepared, wanted: Wanted, budget: Budget, command: Sequence[str]
) -> Iterator[str]:
    """Say what is going to happen, before it does."""
    words = ", ".join(dict.fromkeys(one.word for one in prepared.places))
    exchanges = len({one.seq for one in prepared.places})
    if prepared.given is not None:
        yield f"playhead: {prepared.tape.id!r} with the faults of {wanted.schedule}"
    else:
        yield (
            f"playhead: exploring {prepared.tape.id!r} with the seeds 1 to {wanted.seeds}:"
            f" faults at {exchanges} exchanges ({words})"
        )
    check = f", and {wanted.judge.text}" if wanted.judge.check else ""
    yield f"  never: an effect that is done twice, a contract that is broken{check}"
    yield from announce_live(prepared.declared.live)
    if prepared.declared.sends:
        yield f"  price: one run {prepared.price.show()} as recorded; each may ask more"
        yield f"  cap: {budget.caps.show()}"
    else:
        yield NOTHING_LEAVES
    yield from announce_command(command)


class _Exploration:
    """The runs of one exploration."""

    def __init__(
        self,
        config: Config,
        wanted: Wanted,
        prepared: _Prepared,
        place: Place,
        budget: Budget,
        noted: NotedRuns | None,
    ) -> None:
        self._noted = noted
        self._config, self._wanted, self._prepared = config, wanted, prepared
        self._place, self._budget = place, budget
        self.found: Tried | None = None
        """The smallest schedule that breaks something."""
        self._tried: dict[Schedule, Tried] = {}
        self._seeds = 0
        """Those that were looked at."""
        self._stopped = ""
        """Why it ended before all of them were."""
        self._kept: tuple[str, Path | None] | None = None
        self._numbers = iter(range(1, 1 << 62))

    def run(self, at_once: int) -> None:
        """Run until something is broken, or all seeds have been tried. Raises: EngineError."""
        with Workers(at_once) as workers:
            self._require_sound(workers)
            if self._prepared.given is not None:
                tried = self._run_one(workers, None, self._prepared.given)
                self.found = tried if tried is not None and tried.broken else None
                return
            first = self._search(workers, at_once)
            if first is not None:
                self.found = self._shrink(workers, first)
        if self.found is not None and self._wanted.keep:
            self._keep(self.found)
        if self._noted is not None and not self._stopped:
            self._noted.finish()

    def _require_sound(self, workers: Workers) -> None:
        """Have the run break nothing without a fault. Raises: EngineError."""
        tried = self._run_one(workers, None, ())
        if tried is None:
            raise EngineError(f"no run could be made: {self._budget.show()}", "give a higher cap")
        if tried.broken:
            raise EngineError(
                f"{self._prepared.tape.id!r} breaks the rule without any fault: {tried.broken[0]}",
                f"there is nothing to look for; see: playhead effects {shell_word(tried.ran.run)}",
            )
        if tried.ran.no_result:
            raise EngineError(
                f"{self._prepared.tape.id!r} cannot be run again without any fault: {one_line(tried.ran.no_result)}",
                f"see: playhead replay {shell_word(self._prepared.tape.id)}",
            )
        if tried.untested:
            raise EngineError(
                f"it is unknown whether {self._prepared.tape.id!r} breaks the rule without any fault: {one_line(tried.untested)}",
                f"the check has to end with 0, twice, after {tried.ran.run!r}",
            )

    def _search(self, workers: Workers, at_once: int) -> Tried | None:
        """Find the first seed whose schedule breaks something."""
        drawn = (
            (seed, draw(seed, self._prepared.places)) for seed in range(1, self._wanted.seeds + 1)
        )
        waiting: dict[int, tuple[int, Schedule]] = {}
        started: set[Schedule] = set()
        first: Tried | None = None
        done = False
        following: tuple[int, Schedule] | None = None
        while not done or workers.running:
            while not done and workers.has_room and first is None:
                following = following or next(drawn, None)
                if following is None:
                    done = True
                    break
                seed, schedule = following
                self._seeds = seed
                if schedule in started or self._find_known(seed, schedule) is not None:
                    following = None
                    continue
                number = self._start(workers, schedule)
                if number is None:
                    if not self._budget.waits:
                        self._stopped = f"a cap was reached: {self._budget.show()}; the same command goes on there with a higher cap"
                        done = True
                    break  # it is started once another one has ended
                started.add(schedule)
                waiting[number], following = following, None
            if first is not None:
                done = True
            if workers.running:
                ended = workers.wait()
                tried = self._take(ended, *waiting.pop(ended.name))
                # Of those at the same time the first seed counts, whichever ended first.
                if tried.broken and (first is None or (tried.seed or 0) < (first.seed or 0)):
                    first = tried
        if first is not None:
            self._seeds = first.seed or self._seeds
        return first

    def _shrink(self, workers: Workers, tried: Tried) -> Tried:
        """Leave out fault after fault, as long as something is still broken."""
        smallest = tried
        while True:
            for schedule in find_smaller(smallest.schedule):
                other = self._run_one(workers, smallest.seed, schedule)
                if other is not None and other.broken:
                    smallest = other
                    break
            else:
                return smallest

    def _run_one(self, workers: Workers, seed: int | None, schedule: Schedule) -> Tried | None:
        """Run a schedule that was not run before; None where a cap is reached."""
        known = self._find_known(seed, schedule)
        if known is not None:
            return known
        if self._start(workers, schedule) is None:
            return None
        return self._take(workers.wait(), seed, schedule)

    def _find_known(self, seed: int | None, schedule: Schedule) -> Tried | None:
        """Find what came of a schedule in this call, or in an earlier one that broke nothing with it."""
        known = self._tried.get(schedule)
        if known is not None:
            return known._replace(seed=seed)
        found = self._noted.find(repr(schedule)) if self._noted is not None else []
        for one in found:
            if one.standing is Standing.BAD:
                continue  # what was broken is looked at again
            why = "" if one.standing is Standing.GOOD else "as an earlier call found"
            known = Tried(seed, schedule, one.ran, (), why)
            self._tried[schedule] = known
            return known
        return None

    def _start(self, workers: Workers, schedule: Schedule) -> int | None:
        number = next(self._numbers)
        declared = self._prepared.declared
        part = self._budget.give(number) if declared.sends else Caps()
        if part is None:
            return None
        if schedule:
            at = min(after(one) for one in schedule)
            declared = replace(declared, at=at)
        declared = replace(declared, schedule=RunningSchedule(schedule, self._prepared.late_s))
        declared = reserve(declared, self._budget.caps, self._prepared.price)
        limits = limit_run(self._config.limits, part, Spent())
        config = replace(self._config, limits=limits)
        work: Work = partial(_run_and_look, config, self._place, declared)
        if self._noted is not None:
            work = self._noted.note(number, repr(schedule), part, work)
        workers.start(number, work)
        return number

    def _take(self, done: Done, seed: int | None, schedule: Schedule) -> Tried:
        ran = read_done(done)
        self._budget.take(done.name, ran)
        broken = [f"{row['invariant']}: {row['text']}" for row in done.result["broken"]]
        judged = self._judge(done, ran)
        if judged.standing is Standing.BAD:
            broken.append(judged.why)
        untested = judged.why if judged.standing is Standing.UNKNOWN else ""
        if schedule and len(ran.unmet) == len(schedule):
            untested = "the agent did not come to its faults"
        if broken:
            untested = ""  # what was done was done
        tried = Tried(seed, schedule, ran, tuple(broken), untested)
        if self._noted is not None:
            standing = Standing.UNKNOWN if tried.untested else Standing.GOOD
            standing = Standing.BAD if broken else standing
            self._noted.end(done.name, repr(schedule), ran, standing)
        self._tried[schedule] = tried
        if schedule:
            said = broken[0] if broken else tried.untested or "nothing is broken"
            if ran.unmet and not tried.untested:
                said += f" (not met: {'; '.join(ran.unmet)})"
            which = f"seed {seed}: " if seed is not None else ""
            print_status(f"  {which}{_say(schedule)}: {one_line(said)}, {ran.run!r}")
        return tried

    def _judge(self, done: Done, ran: Ran) -> Judged:
        """Say how a run stands by its check; without one, it is good if it has a result. Raises: EngineError."""
        judge = self._wanted.judge
        if judge.check:
            return judge.judge(self._config, ran, done.files, ran.no_result)
        return Judged(Standing.UNKNOWN if ran.no_result else Standing.GOOD, ran.no_result)

    def _keep(self, tried: Tried) -> None:
        """Keep the smallest schedule, as a tape and as a file."""
        tape = self._prepared.tape.id
        with open_store(self._config) as store:
            run = store.runs.get(tried.ran.run)
            name = f"{tape}-seed-{tried.seed}"
            late_s = self._prepared.late_s
            kept = keep_tape(store, run, self._config, tried.schedule, late_s, name)
        text = "\n".join(_file_lines(tape, tried, self._prepared.late_s, kept.id))
        path = None
        try:
            path = keep_schedule(kept.id, text)
        except EngineError as error:
            print_status(f"playhead: {error}")
        self._kept = kept.id, path

    @property
    def _untested(self) -> list[Tried]:
        return [one for one in self._tried.values() if one.schedule and one.untested]

    @property
    def tested(self) -> int:
        """How many schedules tell something."""
        return sum(map(bool, self._tried)) - len(self._untested)

    def render(self) -> Iterator[str]:
        """Give the lines for a person."""
        tried, found = sum(map(bool, self._tried)), self.found
        if found is None:
            what = "nothing was broken" if self.tested else "nothing was tested"
            yield f"{what}: {self._seeds} seeds, {tried} different schedules"
            if self._stopped:
                yield f"  stopped: {self._stopped}"
            yield from self._explain_untested()
            return
        where = f"seed {found.seed} of {self._wanted.seeds}: " if found.seed is not None else ""
        yield f"{where}{found.broken[0]}"
        for one in found.broken[1:]:
            yield f"  and {one}"
        yield "the smallest schedule:" if found.seed is not None else "the schedule:"
        for fault in found.schedule:
            yield f"  {fault.text}"
        yield f"look at it: playhead effects {shell_word(found.ran.run)}"
        if self._kept is not None:
            command = shlex.join(self._place.command)
            name, path = self._kept
            yield f"kept as the tape {name!r}: playhead replay {shell_word(name)} -- {command}"
            if path is None:
                return
            yield f"and as {path}: playhead explore {shell_word(self._prepared.tape.id)} --schedule {shell_word(path)} -- {command}"

    def _explain_untested(self) -> Iterator[str]:
        refused = [
            one for one in self._untested if one.untested == one.ran.no_result and one.ran.refused
        ]
        if refused:
            yield (
                f"  in {len(refused)} of them the agent went on with questions that the tape does not hold, and was refused:"
                " --live inference lets the model answer them"
            )
        others = Counter(one.untested for one in self._untested if one not in refused)
        for why, count in sorted(others.items()):
            yield f"  {count} of them tell nothing: {one_line(why)}"

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        found = self.found
        spent = self._budget.spent
        return {
            "run": self._prepared.tape.id,
            "seeds": self._seeds,
            "schedules": sum(map(bool, self._tried)),
            "untested": len(self._untested),
            "stopped": self._stopped or None,
            "found": None
            if found is None
            else {
                "seed": found.seed,
                "broken": list(found.broken),
                "faults": [_fault_row(one) for one in found.schedule],
                "run": found.ran.run,
                "tape": self._kept[0] if self._kept is not None else None,
                "file": str(self._kept[1]) if self._kept is not None and self._kept[1] else None,
            },
            "calls": spent.calls,
            **spent_json(spent),
        }


def _run_and_look(config: Config, place: Place, declared: Branch, files: Files) -> dict[str, Any]:
    """Run the command in a process of its own, and see what it did. Raises: PlayheadError."""
    told = run_once(config, place, declared, files)
    with open_store(config, readonly=True) as store:
        broken = find_broken(store, store.runs.get(told["run"]), files)
    return {**told, "broken": broken}


def _say(schedule: Iterable[ScheduledFault]) -> str:
    return "; ".join(fault.text for fault in schedule)


def _fault_row(fault: ScheduledFault) -> dict[str, Any]:
    row: dict[str, Any] = {"seq": fault.seq, "kind": fault.word.value}
    if fault.other is not None:
        row["other"] = fault.other
    if fault.share:
        row["share"] = fault.share
    return row


def _file_lines(tape: str, tried: Tried, late_s: float, kept: str) -> Iterator[str]:
    yield f"# {one_line(tried.broken[0])}"
    yield f"run: {json.dumps(tape)}"
    if tried.seed is not None:
        yield f"seed: {tried.seed}"
    yield f"late: {late_s:g}s"
    yield f"tape: {json.dumps(kept)}"
    yield "faults:"
    for fault in tried.schedule:
        yield f"  - {json.dumps(_fault_row(fault))}"
    yield ""
