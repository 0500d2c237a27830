"""JSON Schemas of what commands print with `--json`, each with a version.

Within a version keys are added, and none is removed or gets another type. Who removes or changes one raises the version, and says so
in the CHANGELOG.
"""

from typing import Any

from .json_key_meanings import EFFECT, EXCHANGE, RECEIPT, Meanings

Shape = Any
"""`str`, `int`, `bool`, `float`, `dict` or `object`, which is anything; a list with the shape of its items; a dictionary of keys and shapes; a tuple of shapes, of which one fits."""

_NAMES = {str: "string", int: "integer", bool: "boolean", float: "number", dict: "object"}
_ANY = object
_OPTIONAL = "?"
"""Ends the name of a key that is not always there."""
_TEXT = (str, None)
_NUMBER = (int, None)
_GOES = {"run": str, "goes": bool, "reason": str}
_ROWS = [dict]
_OBJECT = (dict, None)
_OUTCOME = {"verdict": str, "by": _TEXT, "text": _TEXT}
_NOTE = {"at_ns": int, "seq": int, "text": str, "by": str}
_RECEIPT = {
    **{"version": int, "run": str, "parent": _TEXT, "mode": str, "status": str, "end": _TEXT},
    **{"level": str, "faithful": (bool, None), "faithful_but_for": [_ANY], "exit_code": int},
    **{"child_exit": _NUMBER, "command": [str], "stdout": _OBJECT, "files": _ANY},
    "left_running": _ROWS,
    **{"folder": _OBJECT, "file_effects": (_ROWS, None), "file_effects_omitted": _NUMBER},
    **{
        "tape": _OBJECT,
        "contained": bool,
        "contained_but_for": [_ANY],
        "changed": _ROWS,
        "sandbox": _OBJECT,
    },
    **{"determinism": _OBJECT, "requests": int, "counts": dict, "branch": _OBJECT},
    **{"resume": _OBJECT, "matched": dict, "model_drift": _ROWS, "drifted": _ROWS},
    **{"background": [_ANY], "own_programs": [_ANY], "kind_alone": int, "secrets_replaced": dict},
    **{"secrets_as_recorded": dict, "ignored_content": [_ANY], "late": [_ANY], "profiles": [_ANY]},
    **{"unprofiled": [_ANY], "reordered_results": _ANY, "headers_differ": _ANY},
    **{"protocols_differ": _ANY, "credentials_merged": _ANY, "effects": _ROWS, "gates": _ROWS},
    **{"injected": _ROWS, "contracts": _ROWS, "contract_violations": int, "root_after": _OBJECT},
    **{"root": _OBJECT, "followed": dict, "divergences": _ROWS, "folded": [_ANY]},
    **{"telemetry": dict, "unused": _ROWS, "live": _ROWS, "claims": [_ANY], "refused": _ROWS},
    **{"faults": _ROWS, "unfinished": [_ANY], "gaps": [_ANY], "tape_gap": bool, "sink_lost": _ANY},
    **{"stopped": _OBJECT, "limits": _OBJECT, "attempts": _ROWS, "unrecorded": [_ANY]},
    **{"egress": _ROWS, "foreign": _ROWS, "capture": _OBJECT, "warnings": [_ANY], "hints": [_ANY]},
    "rows_omitted": dict,
    "signature?": dict,
}
_EFFECT = {
    **{"seq": int, "method": str, "url": str, "summary": str, "answered_by": str, "outcome": str},
    **{"note": str, "by": str, "tape_seq": _NUMBER, "after": [int], "rule": str, "reason": str},
    **{"status": _NUMBER, "idempotency_key": _TEXT, "repeat": _OBJECT, "drifted": str},
    **{"gate": _OBJECT, "divergence": _TEXT, "nearest_seq": _NUMBER, "differences": [_ANY]},
    **{"body_bytes?": int, "body_cut?": bool, "body?": _ANY, "body_base64?": str},
}
_RUN = {
    **{"id": str, "mode": str, "status": str, "parent": _TEXT, "exchanges": int},
    **{"created_ns": int, "sealed_ns": int, "agent": str, "outcome": _OUTCOME, "labels": [str]},
    **{"pinned": bool, "archived": _OBJECT, "end": _TEXT},
}
_FOUND = {"run": str, "mode": str, "created_ns": int, "seqs": [int], "excerpt": _TEXT}
_CONTRACT = {
    **{"seq": int, "of": str, "rule": str, "refused": bool, "recorded": bool, "count": int},
    **{"violations": _ROWS, "unchecked": [str]},
}
_VERIFIED = {
    **{"run": str, "state": str, "exchanges": int, "unproven": int},
    "problems": [{"seq": int, "event": int, "text": str}],
    "rewritten": _ROWS,
}
_SECRETS = {"runs": int, "found": [{"run": str, "seq": int, "place": str, "kind": str}]}
_RECEIPT_FILE = {"file": str, "run": _TEXT, "signed": bool, "problem": _TEXT}
_SIMILAR = {
    **{"run": str, "likeness": float, "outcome": str, "by": _TEXT, "text": _TEXT},
    **{"created_ns": int, "exchanges": int},
}

SCHEMAS: dict[str, tuple[int, Shape]] = {
    "runs": (1, ([_RUN], [_FOUND])),
    "receipt": (1, _RECEIPT),
    "effects": (1, [_EFFECT]),
    "show": (1, (dict, _ROWS)),
    "similar": (1, [_SIMILAR]),
    "contracts": (1, [_CONTRACT]),
    "label": (1, [str]),
    "note": (1, [_NOTE]),
    "export": (1, {"file": str, "bytes": int, "runs": [str], "key?": str}),
    "import": (1, [{"id": str, "exchanges": int, "redacted": int}]),
    "archive": (
        1,
        {"runs": [_GOES], "archived": _ANY, "refused": [{"run": str, "reason": str}]},
    ),
    "gc": (
        1,
        {
            **{"runs": [_GOES], "deleted": bool, "file_bytes": int, "before_bytes": int},
            **{"after_bytes": int, "waiting": str},
        },
    ),
    "erase": (1, [str]),
    "verify": (1, ([_VERIFIED], _SECRETS, _RECEIPT_FILE)),
}
"""Command -> version and shape of its document; a command that prints one of several has a tuple."""
_MEANINGS = {
    "receipt": RECEIPT,
    "effects": EFFECT,
    "contracts": RECEIPT["contracts"][1],
    "show": EXCHANGE,
}


def make_schema(command: str) -> dict[str, Any]:
    """Give the JSON Schema of a command of `SCHEMAS`."""
    version, shape = SCHEMAS[command]
    made = _to_schema(shape)
    _describe(made, _MEANINGS.get(command, {}))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:playhead:json:{command}:{version}",
        "title": f"playhead {command} --json",
        **made,
    }


def _describe(schema: dict[str, Any], meanings: Meanings) -> None:
    """Put the text of each key into an object's schema, or that of a list's rows; of several schemas, the first."""
    if not meanings:
        return
    schema = schema.get("anyOf", [schema])[0]
    rows = schema["items"] if schema.get("type") == "array" else schema
    properties = rows.setdefault("properties", {})
    for keys, meaning in meanings.items():
        text, inner = meaning if isinstance(meaning, tuple) else (meaning, {})
        for key in keys.split(", "):
            made = properties.setdefault(key.removesuffix("[]"), {})
            if key.endswith("[]"):
                made |= {"type": "array", "items": {}}
            made["description"] = f"{keys}: {text}" if ", " in keys else text
        _describe(made, inner)


def _to_schema(shape: Shape) -> dict[str, Any]:
    if shape is None:
        return {"type": "null"}
    if shape is _ANY:
        return {}
    if isinstance(shape, type):
        return {"type": _NAMES[shape]}
    if isinstance(shape, tuple):
        made = [_to_schema(one) for one in shape]
        if all(set(one) == {"type"} for one in made):
            return {"type": [one["type"] for one in made]}
        return {"anyOf": made}
    if isinstance(shape, list):
        return {"type": "array", "items": _to_schema(shape[0])}
    return {
        "type": "object",
        "required": [key for key in shape if not key.endswith(_OPTIONAL)],
        "properties": {key.rstrip(_OPTIONAL): _to_schema(one) for key, one in shape.items()},
    }
