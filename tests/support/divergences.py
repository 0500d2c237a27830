"""The schema of divergences, as it is shipped."""

import json
from importlib.resources import files

from jsonschema import Draft202012Validator

SCHEMA = json.loads((files("playhead.tape") / "divergence.schema.json").read_text("utf-8"))
Draft202012Validator.check_schema(SCHEMA)
DIVERGENCES = Draft202012Validator(SCHEMA)
