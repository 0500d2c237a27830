"""What a run's messages are held to: the contracts that speak of a request, and what came of checking it and its answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..config import Breach, Config, ContractRule
from ..tape.contract_hold import can_hold
from ..tape.divergence import one_line
from ..tape.events import EventKind
from ..tape.model import Headers, Request, RequestClass, Response
from ..tape.policy import Facts

if TYPE_CHECKING:
    from ..tape.contract import Checked
    from .flight import Flight

MODELS = "model_contracts"
"""What decided where a model's answer is not what its request declares."""
MAX_REASON = 600
_DECLARED = "declared by the request"


class Contracts:
    """What one run's messages are held to."""

    def __init__(self, config: Config) -> None:
        """Take the rules of a configuration."""
        self._rules = config.contracts
        self._models = config.model_contracts

    @classmethod
    def of(cls, config: Config) -> "Contracts | None":
        """Give the contracts of a configuration; None where it has none."""
        return cls(config) if config.contracts or config.model_contracts is not None else None

    def asks(self, facts: Facts) -> bool:
        """Say whether a request's body has to be read before it leaves."""
        return self._find(facts, "request") is not None

    def find(self, facts: Facts) -> "Terms | None":
        """Give what holds for a request and its answer; None where nothing does."""
        asked, answered = self._find(facts, "request"), self._find(facts, "response")
        model = self._models if facts.request_class is RequestClass.INFERENCE else None
        if asked is None and answered is None and model is None:
            return None
        return Terms(asked, answered, model)

    def _find(self, facts: Facts, says: str) -> ContractRule | None:
        for rule in self._rules:
            if getattr(rule, says) and rule.match.matches(
                facts.method, facts.scheme, facts.host, facts.port, facts.target
            ):
                return rule
        return None


class Found(NamedTuple):
    """What was found in a message."""

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


class Terms:
    """What holds for one request and its answer, and what came of it."""

    def __init__(
        self, asked: ContractRule | None, answered: ContractRule | None, model: Breach | None
    ) -> None:
        """Nothing has been checked yet."""
        self.asked = asked
        self.answered = answered
        self.model = model
        self.breach = ""
        """How the request breaks a contract that says refuse."""
        self.holds = False
        """Whether the answer is held back until it has been checked."""
        self.withheld = ""
        """Why the client is sent a refusal in the place of the answer."""
        self.in_request: Found | None = None
        self._found: list[Found] = []
        """In the answer."""

    @property
    def judges(self) -> bool:
        """Whether the answer is checked."""
        return self.answered is not None or self.model is not None

    @property
    def refuses(self) -> bool:
        """Whether an answer may be refused."""
        rule = self.answered
        strict = rule is not None and rule.on_violation is Breach.REFUSE
        return strict or self.model is Breach.REFUSE

    def may_hold(self, method: str, status: int, headers: Headers) -> bool:
        """Say by its head whether an answer is held back until it has been checked, its size aside."""
        return self.refuses and can_hold(method, status, headers)

    def judge(
        self,
        request: Request,
        response: Response,
        shown: Response,
        words: Callable[[str], str],
        *,
        held: bool,
    ) -> None:
        """Check an answer. Any thread.

        shown: the same without its secrets.
        words: takes the secrets out of a text.
        held: whether none of it has reached the client, so that it can be refused.
        """
        self._found = []
        if self.answered is not None:
            from ..tape.contract import check_response  # for who has contracts: not for a start

            rule = self.answered
            checked = check_response(rule.response, response, shown)
            refuses = held and rule.on_violation is Breach.REFUSE
            self._found.append(Found("response", rule.match.text, checked, refuses))
        if self.model is not None:
            from ..tape.model_contract import check_answer  # reads every dialect

            checked = check_answer(request, response, shown)
            refuses = held and self.model is Breach.REFUSE
            self._found.append(Found("model", MODELS, checked, refuses))
        for found in self._found:
            if found.refused and not self.withheld:
                # What matters most comes first: who shows it cuts it.
                name = f"contract {found.rule!r}" if found.of == "response" else _DECLARED
                text = (
                    f"the upstream answered {response.status}, so it may have been done, but the answer is not as"
                    f" agreed on: {found.checked.text} ({name})"
                )
                self.withheld = one_line(words(text), MAX_REASON)

    def tell(self, flight: "Flight", *, recorded: bool = False) -> None:
        """Note in the run's log what was found in the answer. Loop.

        recorded: whether the client was refused the answer on the tape.
        """
        for found in self._found:
            tell(flight, found, recorded=recorded)


def tell(flight: "Flight", found: Found, *, recorded: bool = False) -> None:
    """Note in the run's log what a check has found, if it has found anything. Loop."""
    checked = found.checked
    if not checked.violations and not checked.unchecked:
        return
    session = flight.session
    session.note(
        EventKind.CONTRACT,
        seq=flight.seq,
        of=found.of,
        rule=found.rule,
        refused=found.refused,
        recorded=recorded,
        count=checked.count,
        violations=[[session.redactor.words(text) for text in one] for one in checked.violations],
        unchecked=list(checked.unchecked),
    )
    session.tally.contracts[found.of] += checked.count
