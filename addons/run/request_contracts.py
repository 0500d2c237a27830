"""The contract state of one request: the applicable contracts and the violations found."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ...config import OnViolation
from ...tape.contracts.applicable_contracts import MODELS, ApplicableContracts
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import RawResponse, RedactedText, Request, Response, Seq
from ...tape.records.events import EventKind
from .run_state import OpenRun

if TYPE_CHECKING:
    from ...tape.contracts.check import Checked

MAX_REASON = 600
_DECLARED = "declared by the request"


class ContractViolation(NamedTuple):
    """The violations of one contract by one message; none if the message follows it."""

    of: str
    """`request`, `response` or `model`."""
    rule: str
    checked: "Checked"
    refuses: bool
    """Whether it is refused for that: a request also for what cannot be checked, an answer for a violation alone."""

    @property
    def refused(self) -> bool:
        """Whether it is refused."""
        return self.refuses and bool(self.checked.violations or self.of == "request")


class ContractState:
    """The contracts of one request, and what came of them."""

    def __init__(self, applicable: ApplicableContracts) -> None:
        """Nothing has been checked yet."""
        self.applicable = applicable
        self.violation = ""
        """How the request breaks a contract that says refuse."""
        self.holds = False
        """Whether the answer is held back until it has been checked."""
        self.withheld = RedactedText("")
        """Why the client is sent a refusal in the place of the answer."""
        self.in_request: ContractViolation | None = None
        self._found: list[ContractViolation] = []
        """In the answer."""

    def check_answer(
        self,
        request: Request,
        response: RawResponse | Response,
        shown: Response,
        redact_text: Callable[[str], RedactedText],
        *,
        held: bool,
    ) -> None:
        """Check an answer. Any thread.

        shown: the same without its secrets.
        redact_text: takes the secrets out of a text.
        held: whether none of it has reached the client, so that it can be refused.
        """
        self._found = []
        if (rule := self.applicable.response) is not None:
            from ...tape.contracts.check import (
                check_response,
            )  # for who has contracts: not for a start

            checked = check_response(rule.response, response, shown)
            refuses = held and rule.on_violation is OnViolation.REFUSE
            self._found.append(ContractViolation("response", rule.match.text, checked, refuses))
        if self.applicable.model is not None:
            from ...tape.contracts.check_model_output import check_answer  # reads every dialect

            checked = check_answer(request, response, shown)
            refuses = held and self.applicable.model is OnViolation.REFUSE
            self._found.append(ContractViolation("model", MODELS, checked, refuses))
        for found in self._found:
            if found.refused and not self.withheld:
                # What matters most comes first: who shows it cuts it.
                name = f"contract {found.rule!r}" if found.of == "response" else _DECLARED
                text = (
                    f"the upstream answered {response.status}, so it may have been done, but the answer violates"
                    f" its contract: {found.checked.text} ({name})"
                )
                self.withheld = one_line(redact_text(text), MAX_REASON)

    def report(self, open_run: OpenRun, seq: Seq, *, recorded: bool = False) -> None:
        """Note in the run's log what was found in the answer. Loop.

        recorded: whether the client was refused the answer on the tape.
        """
        for found in self._found:
            report(open_run, seq, found, recorded=recorded)


def report(
    open_run: OpenRun, seq: Seq, found: ContractViolation, *, recorded: bool = False
) -> None:
    """Note in the run's log what a check has found, if it has found anything. Loop."""
    checked = found.checked
    if not checked.violations and not checked.unchecked:
        return
    open_run.note(
        EventKind.CONTRACT,
        seq=seq,
        of=found.of,
        rule=found.rule,
        refused=found.refused,
        recorded=recorded,
        count=checked.count,
        violations=[
            [open_run.redactor.redact_text(text) for text in one] for one in checked.violations
        ],
        unchecked=list(checked.unchecked),
    )
    open_run.counters.contracts[found.of] += checked.count
