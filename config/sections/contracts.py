"""What requests to an endpoint and its answers have to look like."""

from dataclasses import dataclass, field
from enum import StrEnum

from ..contract_schema_file import read_schema
from ..document import Fields, Value
from ..key_declarations import custom, key
from ..match_pattern import Match
from ..parse_values import Choice, member
from ..safe_json_schema import BadSchema, compile_schema
from .live import PATTERN


class OnViolation(StrEnum):
    """What Playhead does if a message violates its contract."""

    NOTE = "note"
    """It is an event of the run, and nothing else."""
    REFUSE = "refuse"
    """The client is sent a refusal in the place of an answer, where that can be done."""


_OFF: dict[str, OnViolation | None] = {"off": None}
parse_model_violation = Choice({**_OFF, **{one.value: one for one in OnViolation}})


def _read_schema(value: Value) -> str:
    """Read a schema that stands here, or in the file that is named; gives it as JSON."""
    if value.is_mapping:
        text = value.json()
        try:
            compile_schema(text)
        except BadSchema as error:
            value.find(error.path).fault(f"no JSON Schema: {error}")
        return text
    path = value.parsed(value.place, None)
    return "" if path is None else value.parsed(lambda _: read_schema(path), "")


_SCHEMA = {"type": ["object", "string"]}


@dataclass(frozen=True, slots=True)
class ContractRule:
    """What requests to an endpoint and its answers have to look like."""

    match: Match = field(metadata=PATTERN)
    request: str = custom(
        _read_schema,
        "",
        "JSON Schema of the request body, or its file.",
        shown="",
        shape=_SCHEMA,
    )
    """As JSON text; empty for none."""
    response: str = custom(
        _read_schema,
        "",
        "The same for answers with status 2xx.",
        shown="",
        shape=_SCHEMA,
    )
    on_violation: OnViolation = key(
        "note",
        member(OnViolation),
        "`note`, or `refuse`: the agent gets a refusal instead.",
    )

    def check(self, given: Fields) -> None:
        """Note a rule without a schema."""
        schemas = [given.given.get(name) for name in ("request", "response")]
        if given.value.is_mapping and all(one is None or one.empty for one in schemas):
            given.value.fault("has no schema; expected request or response, a JSON Schema")
