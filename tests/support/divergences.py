"""The schema of divergences, as it is shipped."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


def check_divergence(made: Any) -> None:
    """Hold a divergence in JSON against the schema.

    Raises: jsonschema.ValidationError.
    """
    _validator().validate(made)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    schema = json.loads((files("playhead.tape") / "divergence.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
