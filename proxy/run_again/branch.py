"""`playhead branch`: say what is going to leave and what it may cost, ask, and run the command once or several times."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...config import Config, Limits
from ...store import RunInfo, Store
from ...tape.counted import counted
from ...tape.diff.divergence_types import one_line
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...tape.policy.limits import show_usd as show_exact
from ...timeline import Receipt
from ...timeline.cost.render import show_usd
from ...timeline.reading.call_cost import has_prices
from ...timeline.receipts.command.command_end import find_command
from ..errors import EngineError
from ..operations.find_tape import choose_recording, get_recording
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_tape
from ..run.launcher import Breaking, ContainerHost, Output
from ..run.launcher import branch as run_branch
from ..standard_streams import print_status
from .announcements import NOTHING_LEAVES, announce_command, announce_live, announce_routes
from .branch_price import Price, find_price, find_spent, left_of, show_unpriced
from .declare_branch import Asked, declare

_NEEDS_PRICES = "{} needs the prices of models, which are not installed"
NO_PRICES = _NEEDS_PRICES.format("--cap")


class CapNames(NamedTuple):
    """What caps, and what they limit, are called where they are given."""

    usd: str = "--cap"
    calls: str = "--max-calls"
    sends: str = "--live or --route"


_FLAGS = CapNames()
_LEAST_CALLS = 10
"""Calls that a branch may make at least, where no cap is given."""
_OWN = 120
"""Highest code of a command's own."""


@dataclass(frozen=True, slots=True)
class Caps:
    """What all runs of a branch may use up together."""

    usd: Decimal | None = None
    calls: int | None = None

    def show(self) -> str:
        """Say them in a few words."""
        told = [] if self.usd is None else [f"{show_exact(self.usd)} USD"]
        if self.calls is not None:
            told.append(f"{self.calls:,} calls")
        return ", ".join(told) + " in all"

    def show_left(self, spent: "Spent") -> str:
        """Say what is left, never more than that; empty without a cap."""
        told = []
        if self.usd is not None:
            left = max(Decimal(0), self.usd - spent.usd)
            is_small = left < Decimal("0.0001")
            told.append(f"{show_exact(left) if is_small else show_usd(left, ROUND_FLOOR)} USD")
        if self.calls is not None:
            told.append(f"{max(0, self.calls - spent.calls):,} calls")
        return f"; left {', '.join(told)}" if told else ""


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often a branch is run, and whether somebody is asked first."""

    times: int = 1
    yes: bool = False
    caps: Caps = Caps()


@dataclass(slots=True)
class Spent:
    """What the runs so far have used."""

    usd: Decimal = Decimal(0)
    """With what was estimated."""
    calls: int = 0
    unpriced: int = 0
    estimated: Decimal = Decimal(0)
    """Of the dollars, those that calls can have cost which did not state all they used."""
    at_least: int = 0
    """Model calls of which more may have been billed."""
    billed: int = 0
    """Model calls that were no errors."""

    def add(self, price: Price) -> None:
        """Add what a run has used."""
        self.usd += price.counted
        self.estimated += price.estimated
        self.calls += price.calls
        self.unpriced += price.total.unpriced
        self.at_least += price.at_least
        self.billed += price.total.requests - price.total.failed

    @property
    def mark(self) -> str:
        """How exact the dollars are, as `show_money` marks them: `?`, `≥`, or `~` where some are estimated; empty where they are stated."""
        if self.unpriced and self.unpriced == self.billed and not self.usd:
            return "?"
        if self.unpriced or self.at_least:
            return "≥"
        return "~" if self.estimated else ""

    def show_usd(self, shown: str = "") -> str:
        """Give the dollars; nothing that may have been billed is shown as free.

        shown: the amount, where it is not to be rounded.
        """
        return "?" if self.mark == "?" else f"{self.mark} {shown or show_usd(self.usd)}".lstrip()

    def show(self, shown: str = "") -> str:
        """Give calls and dollars in a few words."""
        return (
            f"{counted(self.calls, 'call', grouped=True)}, {self.show_usd(shown)} USD"
            f"{_show_estimated(self)}{show_unpriced(self.unpriced)}"
        )


def spent_json(spent: Spent) -> dict[str, Any]:
    """Give the money as JSON types."""
    return {
        "usd": f"{spent.usd:f}",
        "unpriced": spent.unpriced,
        "at_least": spent.at_least,
        "estimated_usd": f"{spent.estimated:f}",
    }


def find_tape(store: Store, name: str) -> RunInfo:
    """Find the recording that a branch leaves. Raises: UnknownRun; RunOpen; StoreError."""
    if name == "latest":
        latest = store.runs.find_latest()
        if latest is None:
            raise EngineError("there is no sealed recording to branch from", "record one first")
        return latest
    return get_recording(store, choose_recording(store, name)[0])


def require_command(config: Config, name: str, command: Sequence[str]) -> None:
    """Refuse to go on without a command; the one of the tape is shown, and never run. Raises: UsageError."""
    if command:
        return
    restore_tape(config, name)
    with open_store(config, readonly=True) as store:
        recorded = find_command(store.events.all(find_tape(store, name)))
    shown = f" (the tape was recorded with: {one_line(shlex.join(recorded))})" if recorded else ""
    raise click.UsageError(
        f"Missing argument '-- COMMAND...': a branch runs the command that you give, and never one of a tape{shown}"
    )


def branch(
    config: Config,
    name: str,
    command: Sequence[str],
    output: Output,
    asked: Asked,
    repeat: Repeat,
    container_host: ContainerHost | None = None,
    *,
    config_file: Path | None = None,
    begin_breaking: Callable[[], Breaking | None] = lambda: None,
) -> int:
    """Run a branch; give the exit code.

    begin_breaking: called once nobody is asked any more, as it takes standard input; gives where the command is held.
    Raises: PlayheadError, before the command is started.
    """
    restore_tape(config, name)
    with open_store(config, readonly=True) as store:
        tape = find_tape(store, name)
        declared = declare(store, tape, config, asked)
        price = find_price(store, tape, declared)
        recorded = find_command(store.events.all(tape))
    caps = find_caps(repeat.caps, declared, price, repeat.times)
    declared = reserve(declared, caps, price)
    for line in announce(tape, declared, price, repeat.times, caps, (command, recorded)):
        print_status(line)
    if declared.sends and not repeat.yes:
        confirm()
    spent, codes, done, breaking = Spent(), list[int](), 0, begin_breaking()
    for number in range(1, repeat.times + 1):
        limited = replace(config, limits=limit_run(config.limits, caps, spent))
        code, receipt = run_branch(
            limited,
            tape.id,
            command,
            output,
            declared,
            container_host,
            config_file=config_file,
            breaking=breaking,
        )
        codes.append(code)
        with open_store(config, readonly=True) as store:
            spent.add(find_spent(store, store.runs.get(receipt.run)))
        if declared.sends or repeat.times > 1:
            print_status(_sum_up(receipt, number, repeat.times, spent, caps))
        # One that a cap has cut is to be made again.
        is_cut = is_limited(receipt)
        done += not is_cut and code != ExitCode.INTERRUPTED
        is_capped = is_cut or (number < repeat.times and _is_used_up(caps, spent))
        if is_capped or code in (ExitCode.LEAKED, ExitCode.INTERRUPTED):
            if done < repeat.times > 1:
                print_status(_left(done, repeat.times, is_capped=is_capped))
                codes.append(ExitCode.DIVERGED)
            break
    return choose_code(codes)


def announce(
    tape: RunInfo,
    declared: Branch,
    price: Price,
    times: int,
    caps: Caps,
    commands: tuple[Sequence[str], Sequence[str]],
) -> Iterator[str]:
    """Say what is going to happen, before it does.

    commands: the one that is run, and the one that the tape was recorded with, which is not.
    """
    at, (command, recorded) = declared.at, commands
    often = f", {times} times" if times > 1 else ""
    yield (
        f"playhead: branch of {tape.id!r} at {at}{often}: earlier requests are answered from the tape,"
        " and never sent again"
    )
    change = declared.change
    if declared.answer is not None:
        yield f"  at {at}: another answer, which is hypothetical ({len(declared.answer.body):,} bytes)"
    if change is not None and change.system is not None:
        yield f"  at {at} and after: another system prompt ({len(change.system):,} characters)"
    if change is not None and change.patch is not None:
        yield f"  at {at}: another request ({', '.join(map(str, change.patch))})"
    if declared == Branch(at):
        yield (
            f"  at {at}: nothing is changed, so this is a replay;"
            " --answer, --edit, --system or --request-change change the exchange"
        )
    yield from announce_live(declared.live)
    yield from announce_routes(declared.routes)
    for one in declared.answers:
        yield f"  hypothetical: {one_line(one.match.text)}"
    if declared.sends:
        yield f"  price: from there on the tape has of these {price.show(times)}"
        yield f"  cap: {caps.show()}"
    elif not declared.answers:
        yield NOTHING_LEAVES
    yield from announce_command(command, recorded)


def confirm() -> None:
    """Ask whether to go on. Raises: EngineError, where nobody can be asked or says no."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise EngineError(
            "something is going to leave, and there is no terminal to ask at",
            "read the declarations above, and say --yes",
        )
    if not click.confirm("playhead: go on?", err=True):
        raise EngineError("nothing was run", "")


def find_caps(
    caps: Caps,
    declared: Branch,
    price: Price,
    times: int,
    names: CapNames = _FLAGS,
) -> Caps:
    """Give the caps of so many runs, by default what they may be expected to need.

    Raises: EngineError.
    """
    if caps.usd is not None and not has_prices():
        raise EngineError(
            _NEEDS_PRICES.format(names.usd),
            f"install playhead[prices], or give {names.calls} in the place of {names.usd}",
        )
    if not declared.sends:
        if caps.usd is not None or caps.calls is not None:
            raise EngineError(
                f"{names.usd} and {names.calls} limit live requests, and nothing is declared live",
                f"add {names.sends}, or leave them out",
            )
        return caps
    calls = caps.calls
    if calls is None:
        calls = expected_calls(price) * times
    return Caps(caps.usd, calls)


def reserve(declared: Branch, caps: Caps, price: Price) -> Branch:
    """Have each call reserve what it can cost before it is sent, where there is a cap in dollars."""
    return declared if caps.usd is None else replace(declared, known_use=price.known_use)


def expected_calls(price: Price) -> int:
    """Give how many requests a run may make where nobody says."""
    return max(_LEAST_CALLS, 2 * price.calls)


def expected_usd(price: Price) -> Decimal:
    """Give how many dollars a run may use where others wait for the rest."""
    return max(price.dearest, 2 * price.total.usd)


def limit_run(limits: Limits, caps: Caps, spent: Spent, calls: int | None = None) -> Limits:
    """Give the limits of the next run: those of the configuration, and what is left of the caps.

    calls: most that this one may make.
    """
    usd = left_of(caps.usd, spent.usd)
    if caps.calls is not None:
        calls = max(0, caps.calls - spent.calls)
    return replace(
        limits,
        usd=min((one for one in (limits.usd, usd) if one is not None), default=None),
        calls=min((one for one in (limits.calls, calls) if one is not None), default=None),
    )


def is_limited(receipt: Receipt) -> bool:
    """Say whether a cap, or a limit of that kind, has cut a run."""
    reached = receipt.limits.reached if receipt.limits is not None else ()
    return any(row["limit"] in ("usd", "calls") for row in reached)


def _is_used_up(caps: Caps, spent: Spent) -> bool:
    used_up = caps.usd is not None and spent.usd >= caps.usd
    return used_up or (caps.calls is not None and spent.calls >= caps.calls)


def _sum_up(receipt: Receipt, number: int, times: int, spent: Spent, caps: Caps) -> str:
    run = f"run {number} of {times}, " if times > 1 else ""
    child = receipt.parts.command.ended.child_exit
    ended = "" if child is None else f", the command ended with {child}"
    text = f"playhead: {run}{receipt.run!r}{ended}"
    if caps.calls is not None:
        text += f"; spent so far {spent.show()}{caps.show_left(spent)}"
    return text


def _show_estimated(spent: Spent) -> str:
    return f" ({show_usd(spent.estimated)} of it estimated)" if spent.estimated else ""


def _left(done: int, times: int, *, is_capped: bool) -> str:
    """Say how many runs came to their own end, and how to make the others."""
    why, how = "something is wrong", "go on with"
    if is_capped:
        why, how = "a cap or limit was reached", "go on with a higher one and"
    return f"playhead: stopped after {done} of {times}: {why}; {how} --times {times - done}"


def choose_code(codes: Sequence[int]) -> int:
    """Give the code of several runs: the first of ours, else the first of the command's own that is not 0."""
    ours = next((code for code in codes if code > _OWN), None)
    return ours if ours is not None else next((code for code in codes if code), 0)
