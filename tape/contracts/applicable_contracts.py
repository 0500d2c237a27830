"""Find the contracts that apply to a request and its answer: the first matching rule with the key wins."""

from typing import NamedTuple

from ...config import Config, ContractRule, OnViolation
from ..exchange import RequestClass
from ..policy.decide import Facts, may_decide

MODELS = "model_contracts"
"""What decides where a model's answer is held to what its request declares."""


class ApplicableContracts(NamedTuple):
    """What holds for one request and its answer."""

    request: ContractRule | None
    response: ContractRule | None
    model: OnViolation | None

    @property
    def answers(self) -> bool:
        """Whether its answer is to be checked."""
        return self.response is not None or self.model is not None

    @property
    def refuses_answers(self) -> bool:
        """Whether its answer may be refused."""
        rule = self.response
        strict = rule is not None and rule.on_violation is OnViolation.REFUSE
        return strict or self.model is OnViolation.REFUSE


class Contracts:
    """The contracts of a configuration."""

    def __init__(self, config: Config) -> None:
        """Take its rules."""
        self._rules = config.contracts
        self._models = config.model_contracts

    @classmethod
    def of(cls, config: Config) -> "Contracts | None":
        """Give the contracts of a configuration; None where it has none."""
        return cls(config) if config.contracts or config.model_contracts is not None else None

    def find(self, facts: Facts) -> ApplicableContracts | None:
        """Find what holds for a request; None where nothing does."""
        asked, answered = self._find(facts, "request"), self._find(facts, "response")
        model = self._models if facts.request_class is RequestClass.INFERENCE else None
        if asked is None and answered is None and model is None:
            return None
        return ApplicableContracts(asked, answered, model)

    def asks(self, facts: Facts) -> bool:
        """Say whether a request's body has to be read before it leaves."""
        return self._find(facts, "request") is not None

    def _find(self, facts: Facts, says: str) -> ContractRule | None:
        if not self._rules:
            return None
        found = list(may_decide(self._rules, facts, lambda rule: bool(getattr(rule, says))))
        strict = (rule for rule in found if rule.on_violation is OnViolation.REFUSE)
        return next(strict, found[0] if found else None)
