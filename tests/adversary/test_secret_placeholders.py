"""What a client does with a secret that an answer gave it works with the placeholder that it gets in a replay.

The cases are those of secrets_placeholders.yaml, which explains them. `OPEN` lists those that fail, with the reason.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from playhead.config.schema import RedactRule
from playhead.tape.exchange import UNLOADABLE, Headers, HttpResponse, Response
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response

from .place import need_client
from .secret_recipes import Made, expand, read
from .secret_texts import filled

CASES = read("placeholders")["cases"]
OPEN: dict[str, str] = {}
"""Cases that fail, and why; one that passes has to leave this list."""


def _answered(one: Made) -> str:
    """Give the text of the answer; JSON by default."""
    if "text" in one.case:
        return one.text
    return json.dumps({"value": one.values["value"]})


def _wanted(one: Made) -> str:
    wanted = one.case.get("gets", "{value}")
    return _answered(one) if wanted == "body" else filled(wanted, one.values)


def _strings(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for one in value.values() for text in _strings(one)]
        case list():
            return [text for one in value for text in _strings(one)]
        case _:
            return []


def _taken(before: str, after: str, wanted: str) -> str:
    """Give what a client takes: in the same string of JSON, or the same place of a text."""
    pairs = [(before, after)]
    with contextlib.suppress(ValueError):  # it is no JSON
        pairs = list(zip(_strings(json.loads(before)), _strings(json.loads(after)), strict=True))
    for one, other in pairs:
        at = one.find(wanted)
        if at >= 0:
            assert len(one) == len(other), "a placeholder has another length"
            return other[at : at + len(wanted)]
    raise AssertionError("the answer does not contain what the client takes")


def _kept(one: Made, text: str) -> tuple[str, Response, set[str]]:
    """Give what is kept of the text of an answer, the answer, and what it says of its places."""
    rules = [
        RedactRule(pii=tuple(rule["pii"])) for rule in one.case.get("config", {}).get("redact", ())
    ]
    redactor = Redactor(b"a key of a store", rules)
    kind = one.case.get("type", "application/json").encode()
    headers: Headers = ((b"content-type", kind),)
    if one.case.get("place") == "set-cookie":
        headers = (*headers, (b"set-cookie", text.encode()))
        text = ""
    made = make_response(text.encode(), headers=headers)
    came = HttpResponse(**{name: getattr(made, name) for name in HttpResponse.__dataclass_fields__})
    kept, found, _ = redactor.response(came)
    return (kept.body or kept.headers[-1][1]).decode(), kept, {one.kind for one in found}


def _cases() -> Iterator[Any]:
    for case in CASES:
        reason = OPEN.get(case["id"])
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(case, id=case["id"], marks=marks)


@pytest.mark.parametrize("case", _cases())
def test_a_client_works_with_a_placeholder(case: dict[str, Any]) -> None:
    """It gets another value than the one that came, and every line of it runs."""
    need_client(case)
    one = expand(case)[0]
    text = _answered(one)
    after, kept, kinds = _kept(one, text)
    value = _taken(text, after, _wanted(one))
    assert value != _wanted(one), "it was not replaced"
    try:
        exec(case["code"], {"value": value, "original": one.values["value"]})
    except Exception:
        # The receipt names such an answer.
        assert case.get("declared"), value
        assert kept.secrets
        assert UNLOADABLE in kinds
