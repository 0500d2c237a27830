"""One run of a command against a tape, in a process of its own; and what of it is told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ...config import Config
from ...tape.counted import counted
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch
from ...timeline.receipts.render_text import explain_exit
from ..operations.open_store import open_store
from ..run.launcher import ContainerHost, Output
from ..run.launcher import branch as run_branch
from ..run_again.branch import Spent, is_limited
from ..run_again.branch_price import find_spent
from .workers import Done, Files

_OURS: Mapping[int, str] = {
    ExitCode.LEAKED: "something tried to leave past the proxy",
    ExitCode.UNTESTABLE: "it did not come so far that anything could be tested",
    ExitCode.INTERRUPTED: "it was interrupted",
}
"""Codes that are none of the command, and what they say where its receipt is not at hand."""
_EXPLAINED = (ExitCode.LEAKED, ExitCode.UNTESTABLE)


class Place(NamedTuple):
    """Where a command is run, and against which tape."""

    tape: str
    command: Sequence[str]
    container_host: ContainerHost | None
    config_file: Path


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended."""

    run: str
    code: int
    """As `playhead branch` gives it."""
    child_exit: int | None
    refused: tuple[str, ...]
    """Why requests were refused, the first ones."""
    stubbed: int
    """Effects that were answered with what nobody has answered."""
    calls: int
    """What left."""
    usd: Decimal
    unpriced: int
    limited: bool
    """Whether a cap was reached."""
    unmet: tuple[str, ...] = ()
    """Faults of its schedule that changed nothing, since the command did not come to them."""
    because: str = ""
    """Why its code is one of ours, as its receipt says; empty where it is the command's, or was noted by an earlier call."""
    at_least: int = 0
    billed: int = 0
    estimated: Decimal = Decimal(0)
    """See `Spent`."""

    @property
    def no_result(self) -> str:
        """Say why it tells nothing; empty where it does."""
        if self.refused:
            return f"a request was refused: {self.refused[0]}"
        return self.because or _OURS.get(self.code, "")

    @property
    def untested(self) -> str:
        """Say why it tells nothing of what its tapes would have done; empty where it does."""
        if self.stubbed and not self.refused:
            return f"{counted(self.stubbed, 'effect')} that neither tape has"
        return self.no_result

    def add_to(self, spent: Spent) -> None:
        """Add what it has used."""
        spent.usd += self.usd
        spent.calls += self.calls
        spent.unpriced += self.unpriced
        spent.at_least += self.at_least
        spent.billed += self.billed
        spent.estimated += self.estimated


def run_once(config: Config, place: Place, declared: Branch, files: Files) -> dict[str, Any]:
    """Run the command; give what `read_done` reads. Raises: PlayheadError."""
    code, receipt = run_branch(
        config,
        place.tape,
        place.command,
        Output(quiet=True),
        declared,
        place.container_host,
        config_file=place.config_file,
    )
    files.receipt.write_text(json.dumps(receipt.to_json()), "utf-8")
    with open_store(config, readonly=True) as store:
        price = find_spent(store, store.runs.get(receipt.run))
    return {
        "run": receipt.run,
        "code": code,
        "because": explain_exit(receipt, ExitCode(code)) if code in _EXPLAINED else "",
        "child_exit": receipt.parts.command.ended.child_exit,
        "refused": [str(row["reason"]) for row in receipt.refused[:3]],
        "stubbed": receipt.counts["stubbed"],
        "calls": price.calls,
        "usd": str(price.counted),
        "unpriced": price.total.unpriced,
        "at_least": price.at_least,
        "billed": price.total.requests - price.total.failed,
        "estimated": str(price.estimated),
        "limited": is_limited(receipt),
        "unmet": declared.schedule.unmet if declared.schedule is not None else (),
    }


def read_done(done: Done) -> Ran:
    """Read what a process has told."""
    told = done.result
    return Ran(
        told["run"],
        told["code"],
        told["child_exit"],
        tuple(told["refused"]),
        told["stubbed"],
        told["calls"],
        Decimal(told["usd"]),
        told["unpriced"],
        told["limited"],
        tuple(told.get("unmet", ())),
        told.get("because", ""),
        told.get("at_least", 0),
        told.get("billed", 0),
        Decimal(told.get("estimated", 0)),
    )
