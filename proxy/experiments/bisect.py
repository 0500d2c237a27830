"""`playhead bisect`: splice answers of a good run into a bad one, and name the answer that turns it bad.

Both recordings are repeated first. Then said is what two runs have shown that differ in one answer, each of them twice; else that it is
not proved, and why.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import click

from ...config import Config
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import rules_of
from ...tape.counted import counted
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Exchange, RequestClass, Seq
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...tape.policy.refusal import is_grpc
from ...tape.shell_words import shell_word
from ...tape.splicing.bisect_answers import (
    END_RUNS,
    PROOF_RUNS,
    Search,
    Standing,
    most_runs,
)
from ...tape.splicing.pairs import Pair, Pairing, pair_recordings
from ...tape.splicing.splice import Splice
from ...timeline.reading.placeholder_key import find_key
from ..errors import EngineError
from ..operations.find_tape import choose_recording
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_tape
from ..run.launcher import ContainerHost, start_with_own_files
from ..run_again.announcements import announce_live
from ..run_again.branch import Caps, Spent, find_caps, find_tape, limit_run, reserve, spent_json
from ..run_again.branch_price import Price, find_price, left_of
from ..run_again.declare_branch import Asked, declare
from ..standard_streams import print_status
from .journal.inputs import read_inputs
from .journal.journaled_runs import NotedRuns, begin_noted
from .judge import Judge, Judged
from .run_command_once import Place, Ran, read_done, run_once
from .statistical_power import differs, estimate_repeats, find_least_repeats, find_repeats
from .workers import Work, Workers, run_all

_MOST_TIMES = 1000
"""Most that `--times` takes."""
_HIGH, _LOW = 0.9, 0.1
"""Shares of bad runs that are told apart where the caller does not say how often each is run."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a bisection."""

    run: str
    good: str
    judge: Judge
    live: tuple[str, ...] = ()
    reason: str | None = None
    times: int | None = None
    yes: bool = False
    caps: Caps = field(default_factory=Caps)
    anew: bool = False
    """Whether what an earlier call did counts for nothing."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """All that is known before anything runs."""

    bad: RunInfo
    good: RunInfo
    pairing: Pairing
    declared: Branch
    price: Price


@dataclass(slots=True)
class _Tried:
    """A number of answers that was tried, and how its runs stand."""

    count: int
    runs: list[tuple[Ran, Judged]]

    def standing(self, *, by_chance: bool, most_bad: float | None = None) -> Judged:
        """Say how it stands.

        by_chance: whether runs may differ, and most of them count.
        most_bad: the share of bad runs with more of which it is bad; None for most of them.
        """
        found = [judged.standing for _, judged in self.runs]
        share = found.count(Standing.BAD) / len(found)
        if most_bad is not None and 2 * found.count(Standing.UNKNOWN) < len(found):
            return Judged(Standing.BAD if share > most_bad else Standing.GOOD, "")
        most = max(set(found), key=lambda one: (found.count(one), one is Standing.UNKNOWN))
        said = next(judged for _, judged in self.runs if judged.standing is most)
        if len(set(found)) == 1 or by_chance:
            return said
        told = " and ".join(f"{found.count(one)} times {one}" for one in dict.fromkeys(found))
        return Judged(Standing.UNKNOWN, f"it was {told}: the result comes by chance")

    def bad(self, *, or_unknown: bool) -> int:
        """Count the bad runs, those that tell nothing with them or not."""
        found = [judged.standing for _, judged in self.runs]
        return found.count(Standing.BAD) + (found.count(Standing.UNKNOWN) if or_unknown else 0)


def bisect(
    config: Config,
    wanted: Wanted,
    command: Sequence[str],
    container_host: ContainerHost | None,
    config_file: Path,
    *,
    as_json: bool,
) -> int:
    """Bisect; give 0 where an answer is proved to turn the run bad, and 1 where none is.

    Raises: PlayheadError, before anything runs, or where a run cannot be judged.
    """
    start_with_own_files(config, container_host)
    restore_tape(config, wanted.run)
    restore_tape(config, wanted.good)
    with open_store(config, readonly=True) as store:
        prepared = _prepare(store, config, wanted)
    count = len(prepared.pairing.roots)
    times = _find_times(wanted, prepared, count)
    if prepared.declared.live:
        _require_provable(times, count)
    most = _most_tried(count) * times
    caps = find_caps(wanted.caps, prepared.declared, prepared.price, most)
    place = Place(prepared.bad.id, command, container_host, config_file)
    notes = None
    if prepared.declared.sends:
        parts = _tell(prepared, wanted, command)
        inputs = read_inputs(config, command, wanted.judge.check, [config_file])
        notes = NotedRuns(config, "bisect", parts, inputs, anew=wanted.anew)
    lines = _announce(prepared, wanted, times, caps)
    with begin_noted(notes, lines, yes=wanted.yes) as noted:
        made = _Bisection(config, wanted, prepared, place, times, caps, noted)
        made.run()
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=1))
    else:
        for line in made.render():
            click.echo(line)
    return 0 if made.search.found is not None and not made.problem else ExitCode.FAILED


def _prepare(store: Store, config: Config, wanted: Wanted) -> _Prepared:
    """Pair the recordings. Raises: EngineError, saying why they cannot be bisected."""
    bad, good = find_tape(store, wanted.run), find_tape(store, wanted.good)
    if bad.number == good.number:
        raise _are_one(store, wanted, bad)
    keys = find_key(store, bad), find_key(store, good)
    if all(keys) and keys[0] != keys[1]:
        raise EngineError(
            f"the placeholders of {good.id!r} were made with another key than those of {bad.id!r}: the same secret reads"
            " differently in each, so that their answers cannot be compared",
            "record both with one store",
        )
    _require_ends(store, wanted.judge, bad, good)
    seqs = _list_seqs(store, bad, config), _list_seqs(store, good, config)
    reads = partial(_read, store, bad), partial(_read, store, good)
    pairing = pair_recordings(seqs, reads, rules_of(config, thread_time))
    if not any(pair.bad and pair.good for pair in pairing.pairs):
        raise EngineError(
            f"{bad.id!r} and {good.id!r} have no question in common",
            "name a good run of the same task",
        )
    if not pairing.roots:
        raise _nothing_differs(bad, good)
    at = pairing.roots[0].bad
    declared = declare(
        store, bad, config, Asked(int(at or 0), live=wanted.live, reason=wanted.reason)
    )
    return _Prepared(bad, good, pairing, declared, find_price(store, bad, declared))


def _tell(prepared: _Prepared, wanted: Wanted, command: Sequence[str]) -> Iterator[object]:
    """Give what decides what the runs do."""
    for run in (prepared.bad, prepared.good):
        yield from (run.id, run.created_ns)
    yield from ((rule.match.text, kind.value) for rule, kind in prepared.declared.live)
    yield from (wanted.judge.text, *command)


def _are_one(store: Store, wanted: Wanted, run: RunInfo) -> EngineError:
    """Say that both names stand for one recording, and which others there are of these names."""
    names = dict.fromkeys((wanted.run, wanted.good))
    others = dict.fromkeys(
        f"{one}~1" if one == name else str(one)
        for name in names
        for one in choose_recording(store, name)[1]
    )
    shown = " and ".join(map(repr, names))
    text = (
        f"{shown} are both the recording {str(run.id)!r}"
        if len(names) > 1
        else f"{shown} is named twice"
    )
    text += ": there is no other answer to try"
    if not others:
        return EngineError(
            text, "name another recording as the good one; `playhead runs` lists all"
        )
    listed = ", ".join(map(repr, others))
    return EngineError(
        text, f"older recordings of that name: {listed}; name one of them as the good one"
    )


def _nothing_differs(bad: RunInfo, good: RunInfo) -> EngineError:
    return EngineError(
        f"the answers of {bad.id!r} and {good.id!r} to the same requests have the same meaning: there is none to try",
        f"see the differences that remain: playhead diff {shell_word(bad.id)} {shell_word(good.id)}",
    )


def _require_ends(store: Store, judge: Judge, bad: RunInfo, good: RunInfo) -> None:
    """Have the recordings be a bad and a good one, as far as that is known. Raises: EngineError."""
    for run, expected in ((bad, Standing.BAD), (good, Standing.GOOD)):
        found = judge.judge_recorded(store, run)
        if found.standing is Standing.UNKNOWN and not judge.check:
            raise EngineError(
                f"it is unknown whether {run.id!r} is good or bad: {found.why}", "nothing was run"
            )
        if found.standing not in (expected, Standing.UNKNOWN):
            why = found.why.replace("the command", f"the command of {run.id!r}")
            raise EngineError(
                f"{why}, which is {found.standing}; expected a {expected} run there",
                "name the bad run first; --label or --check judge by something else than the exit code",
            )


def _list_seqs(store: Store, run: RunInfo, config: Config) -> list[Seq]:
    """List the exchanges whose answers count."""
    found = []
    for seq in store.exchanges.seqs(run):
        exchange = _read(store, run, seq)
        telemetry = exchange.request_class is RequestClass.TELEMETRY
        odd = exchange.request.method == "CONNECT" or exchange.websocket is not None
        if not (telemetry or odd or is_grpc(exchange.request)):
            found.append(seq)
    return found


def _read(store: Store, run: RunInfo, seq: Seq) -> Exchange:
    found = store.exchanges.find(run, seq)
    if found is None:
        raise EngineError(
            f"exchange {seq} of {run.id!r} is missing", f"playhead verify {shell_word(run.id)}"
        )
    return found


def _find_times(wanted: Wanted, prepared: _Prepared, count: int) -> int:
    if wanted.times is not None:
        return wanted.times
    return find_repeats(_HIGH, _LOW, _comparisons(count)) if prepared.declared.live else 1


def _require_provable(times: int, count: int) -> None:
    """Refuse to pay for repeats that prove nothing, however they end. Raises: EngineError."""
    compared = _comparisons(count)
    least = find_least_repeats(compared)
    if times < least:
        raise EngineError(
            f"--times {times} proves nothing: even if all repeats agreed, a difference could be chance",
            f"nothing was run; --times {least} is the least that can prove one, and"
            f" {find_repeats(_HIGH, _LOW, compared)} mostly do for {_HIGH:.0%} bad runs and {_LOW:.0%}",
        )


def _most_tried(count: int) -> int:
    """Give how many numbers of answers are tried at most: both ends, and what the search takes."""
    return END_RUNS + most_runs(count)


def _comparisons(count: int) -> int:
    """Give how many pairs of neighbours there are at most among these."""
    return _most_tried(count) - 1


def _announce(prepared: _Prepared, wanted: Wanted, times: int, caps: Caps) -> Iterator[str]:
    """Say what is going to happen, before it does."""
    pairing, declared = prepared.pairing, prepared.declared
    count = len(pairing.roots)
    both = sum(pair.bad is not None and pair.good is not None for pair in pairing.pairs)
    runs, searching = _most_tried(count), most_runs(count)
    yield (
        f"playhead: {prepared.bad.id!r} and {prepared.good.id!r} share {both} questions; {count} of these"
        f" {'was' if count == 1 else 'were'} answered otherwise: {END_RUNS} runs that repeat both recordings"
        + (f", at most {searching} that search" if searching else "")
        + (f", {PROOF_RUNS} that repeat the proof" if times == 1 and not declared.live else "")
        + (f", each {times} times" if times > 1 else "")
        + f", judged by {wanted.judge.text}"
    )
    yield from announce_live(declared.live)
    if not declared.live:
        yield "  nothing leaves: requests on neither tape are refused, and such a run is not judged"
        return
    compared = _comparisons(count)
    needed = find_repeats(_HIGH, _LOW, compared)
    yield (
        f"  power: {needed} repeats distinguish {_HIGH:.0%} bad runs from {_LOW:.0%} with 95 % power,"
        f" {find_repeats(0.75, 0.25, compared)} distinguish 75 % from 25 %; given: {times}"
    )
    if times < needed:
        yield "  with fewer repeats than that most differences are not proved"
    yield f"  price: one run {prepared.price.show(runs * times)}"
    yield f"  cap: {caps.show()}"


class _Bisection:
    """The runs of one bisection."""

    def __init__(
        self,
        config: Config,
        wanted: Wanted,
        prepared: _Prepared,
        place: Place,
        times: int,
        caps: Caps,
        noted: NotedRuns | None,
    ) -> None:
        self._noted = noted
        self._config, self._wanted, self._prepared = config, wanted, prepared
        self._place, self._times, self._caps = place, times, caps
        self._by_chance = bool(prepared.declared.live)
        self._tried: list[_Tried] = []
        self._spent = noted.spent if noted is not None else Spent()
        once = not self._by_chance and times == 1
        self.search = Search(len(prepared.pairing.roots), proves=once)
        self.problem = ""
        """Why nothing is proved, whatever the search has found."""
        self._most_bad: float | None = None
        """The share of bad runs with more of which a number of answers is bad; None for most of them."""

    def run(self) -> None:
        """Run until an answer is proved, or nothing is left to be tried."""
        with Workers(1) as workers:
            while not self.problem and (count := self.search.next()) is not None:
                tried, stopped = self._try_and_say(workers, count)
                if not stopped and count == 0 and self._may_be_bad(tried):
                    # Now and then is bad as well, if it is so less often at the other end.
                    other, stopped = self._try_and_say(workers, self.search.count)
                    if not stopped:
                        self._compare_ends(tried, other)
                        continue
                if stopped:
                    self.problem = stopped
                    return  # what is noted is there for the next call
                self.search.tell(count, self._stand(tried).standing)
        self.problem = self.problem or self.search.problem or self._find_chance()
        if self._noted is not None:
            self._noted.finish()

    def _stand(self, tried: _Tried) -> Judged:
        return tried.standing(by_chance=self._by_chance, most_bad=self._most_bad)

    def _may_be_bad(self, tried: _Tried) -> bool:
        """Say whether runs are bad whose result comes by chance, so that the other end is needed to judge them."""
        bad = tried.bad(or_unknown=False)
        return self._by_chance and bad > 0 and self._stand(tried).standing is not Standing.UNKNOWN

    def _compare_ends(self, first: _Tried, last: _Tried) -> None:
        """Search for what makes a run bad if it is so less often with all answers of the good run."""
        times, (standing, _) = self._times, self._stand(last)
        more, fewer = first.bad(or_unknown=False), last.bad(or_unknown=True)
        if self._differs(more, fewer) and standing is not Standing.UNKNOWN:
            self._most_bad = (more + fewer) / (2 * times)
            if 2 * self._most_bad != 1:
                print_status(
                    f"  from here on a number of answers is bad if more than {self._most_bad:.0%} of its runs are"
                )
            self.search.tell(first.count, Standing.BAD)
            self.search.tell(last.count, Standing.GOOD)
        elif standing is Standing.UNKNOWN or (standing is Standing.BAD and fewer >= more):
            self.search.tell(first.count, Standing.BAD)
            self.search.tell(last.count, standing)
        else:
            self.problem = (
                f"{more} of {times} runs were bad without any answer of the good run, and {fewer} with all of them:"
                f" that may be chance{self._say_needed(more, fewer)}"
            )

    def _differs(self, more: int, fewer: int) -> bool:
        return differs(more, fewer, self._times, _comparisons(self.search.count))

    def _say_needed(self, more: int, fewer: int) -> str:
        """Say about how many repeats tell so many bad runs from so many; nothing where no number does."""
        if more <= fewer:
            return ""
        shares = more / self._times, fewer / self._times
        needed = estimate_repeats(*shares, _comparisons(self.search.count))
        needed = max(needed, self._times + 1)
        told = f"; about {needed} repeats tell such shares apart"
        return told + (f": --times {needed}" if needed <= _MOST_TIMES else "")

    def _try_and_say(self, workers: Workers, count: int) -> tuple[_Tried, str]:
        tried, stopped = self._try(workers, count)
        if not stopped:
            print_status(f"  {self._say(tried, self._stand(tried))}")
        return tried, stopped

    def _try(self, workers: Workers, count: int) -> tuple[_Tried, str]:
        """Run with so many answers; give what came of it, and why it is not to be gone on with."""
        tried, problem = _Tried(count, []), ""
        self._tried.append(tried)
        for one in self._noted.find(str(count)) if self._noted is not None else ():
            tried.runs.append((one.ran, Judged(one.standing, "as an earlier call found")))
        times, caps, share = self._times - len(tried.runs), self._caps, replace(self._caps)
        if caps.calls is not None:
            share = replace(caps, calls=max(0, caps.calls - self._spent.calls) // max(1, times))
        if times > 0 and (share.calls == 0 or self._is_used_up):
            return tried, self._say_stopped()
        for done in run_all(workers, (self._work(number, count, share) for number in range(times))):  # fmt: skip
            ran = read_done(done)
            ran.add_to(self._spent)
            judged = self._wanted.judge.judge(self._config, ran, done.files, ran.untested)
            if self._noted is not None:
                self._noted.end(done.name, str(count), ran, judged.standing)
            tried.runs.append((ran, judged))
            if ran.limited or self._is_used_up:
                problem = self._say_stopped()
        return tried, problem

    @property
    def _is_used_up(self) -> bool:
        return self._caps.usd is not None and self._spent.usd >= self._caps.usd

    def _say_stopped(self) -> str:
        return f"a cap was reached: {self._say_spent()}; the same command goes on there with a higher cap"

    def _work(self, number: int, count: int, share: Caps) -> tuple[int, Work]:
        prepared, config = self._prepared, self._config
        splice = Splice(prepared.pairing, count, prepared.good.id)
        share = replace(share, usd=left_of(share.usd, self._spent.usd))
        limits = limit_run(config.limits, share, Spent())
        declared = replace(prepared.declared, splice=splice)
        declared = reserve(declared, self._caps, prepared.price)
        work: Work = partial(run_once, replace(config, limits=limits), self._place, declared)
        if self._noted is not None:
            work = self._noted.note(number, str(count), share, work)
        return number, work

    def _find_chance(self) -> str:
        """Say that what was found may be chance; nothing where it is none."""
        if not self._by_chance or self.search.found is None:
            return ""
        low, high = self._pair()
        more, fewer = low.bad(or_unknown=False), high.bad(or_unknown=True)
        if self._differs(more, fewer):
            return ""
        return (
            f"{more} of {self._times} runs were bad with {counted(low.count, 'answer')} of the good run, and {fewer} with {high.count}:"
            f" that may be chance{self._say_needed(more, fewer)}"
        )

    def _pair(self) -> tuple[_Tried, _Tried]:
        low = next(one for one in self._tried if one.count == self.search.low)
        return low, next(one for one in self._tried if one.count == self.search.high)

    def _say(self, tried: _Tried, judged: Judged) -> str:
        of = (
            f"{tried.count} of {counted(self.search.count, 'answer')} of {self._prepared.good.id!r}"
        )
        if self._times > 1:
            bad = tried.bad(or_unknown=False)
            return f"{of}: {judged.standing}, {bad} of {len(tried.runs)} runs were bad"
        return f"{of}: {judged.standing} ({one_line(judged.why)}), {tried.runs[0][0].run!r}"

    def _say_spent(self) -> str:
        return f"spent {self._spent.show()}{self._caps.show_left(self._spent)}"

    @property
    def _named(self) -> Pair | None:
        place = self.search.found
        return self._prepared.pairing.roots[place - 1] if place and not self.problem else None

    def render(self) -> Iterator[str]:
        """Give the lines for a person."""
        bad, good, pair = self._prepared.bad.id, self._prepared.good.id, self._named
        if pair is None:
            yield f"not proved: {self.problem}"
            if 0 < self.search.high - self.search.low < self.search.count:
                yield f"  it is one of the answers {self.search.low + 1} to {self.search.high}, if it is one"  # fmt: skip
            return
        with open_store(self._config, readonly=True) as store:
            asked = _read(store, self._prepared.bad, Seq(int(pair.bad or 0))).request
        low, high = self._pair()
        seen = {one.count: self._list_runs(one.count) for one in (low, high)}
        yield f"the answer to exchange {pair.bad} turns {bad!r} bad: {asked.method} {one_line(asked.url)}"
        yield f"  bad with {counted(low.count, 'answer')} of {good!r}:  {seen[low.count]}"
        yield f"  good with {counted(high.count, 'answer')} of {good!r}: {seen[high.count]}"
        if other := self._find_other_end():
            yield f"  {other}"
        yield "look at it:"
        yield f"  playhead show {shell_word(bad)} {shell_word(pair.bad)}"
        yield f"  playhead show {shell_word(good)} {shell_word(pair.good)}"
        yield f"  playhead diff {shell_word(low.runs[0][0].run)} {shell_word(high.runs[0][0].run)}"

    def _find_other_end(self) -> str:
        """Say that the bad run of the pair ended otherwise than the repeated recording did; nothing where it ended alike.

        A mixture of two recordings may fail in a way of its own, as where the agent compares answers with each other.
        """
        low, _ = self._pair()
        codes = [
            {
                ran.child_exit
                for tried in self._tried
                if tried.count == count
                for ran, _ in tried.runs
            }
            for count in (0, low.count)
        ]
        if None in codes[0] | codes[1] or codes[0] == codes[1]:
            return ""
        first, other = (" or ".join(sorted(map(str, one))) for one in codes)
        return (
            f"the command ended with {other} there, and with {first} without any answer of"
            f" {self._prepared.good.id!r}: it may be another failure"
        )

    def _list_runs(self, count: int) -> str:
        """Name the runs with so many answers."""
        return ", ".join(
            ran.run for tried in self._tried if tried.count == count for ran, _ in tried.runs
        )

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        pair = self._named
        found = None
        if pair is not None:
            low, high = self._pair()
            found = {
                "seq": pair.bad,
                "good_seq": pair.good,
                "bad_run": low.runs[0][0].run,
                "good_run": high.runs[0][0].run,
            }
        return {
            "run": self._prepared.bad.id,
            "good": self._prepared.good.id,
            "answers": [[one.bad, one.good] for one in self._prepared.pairing.roots],
            "proved": found,
            "problem": self.problem or None,
            "other_end": None if pair is None else self._find_other_end() or None,
            "runs": [
                {
                    "run": ran.run,
                    "answers": tried.count,
                    "standing": judged.standing.value,
                    "why": judged.why,
                }
                for tried in self._tried
                for ran, judged in tried.runs
            ],
            "calls": self._spent.calls,
            **spent_json(self._spent),
        }
