"""The file of `playhead branch --answers`: hypothetical answers, each with the requests that it is for."""

from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError, Fault
from ..key_declarations import Key, entries, read_section
from ..match_pattern import Match
from ..sections.effects import Answer, AnswerKeys
from ..sections.live import PATTERN
from .read_yaml_file import read_given

_MISSING = "missing; expected the answer, as {status: 200, json: {status: pending}}"


def _answer() -> dict[str, Key]:
    def parse(given: object, at: str) -> Answer | None:
        value = given.given.get(at)  # type: ignore[attr-defined]  # `Fields`, as every reader of a key is given
        if value is None:
            given.value.missing(at, _MISSING)  # type: ignore[attr-defined]
            return None
        return read_section(AnswerKeys, value).answer()

    return {"key": Key("", parse, "What is answered.", "", {}, AnswerKeys, required=True)}


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """What is answered to requests that the tape does not hold."""

    match: Match = field(metadata=PATTERN)
    answer: Answer = field(metadata=_answer())


@dataclass(frozen=True, slots=True)
class _AnswersFile:
    answers: tuple[AnswerRule, ...] = entries(AnswerRule, "Hypothetical answers.")


def load_answers(path: Path) -> tuple[AnswerRule, ...]:
    """Read hypothetical answers.

    Raises: ConfigError with every fault.
    """
    wrong = "holds no answers; expected `answers:`, a list of `match` and `answer`"
    found = read_given(path, _AnswersFile, wrong)
    if not found.answers:
        raise ConfigError((Fault(str(path), "", wrong),))
    return found.answers
