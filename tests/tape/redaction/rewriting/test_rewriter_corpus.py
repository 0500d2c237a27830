"""The cases of secrets_formats.yaml, as a run that is stored: what was redacted stays, and what was not is redacted as a recording would."""

from typing import Any

import pytest

from playhead.tape.exchange import (
    Exchange,
    Fingerprint,
    HttpRequest,
    HttpResponse,
    Redaction,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tests.adversary import secret_search
from playhead.tests.adversary.secret_recipes import read
from playhead.tests.support.counts import FULL

CASES = read("formats")["cases"]
_EVERY = 12
"""Every so many cases are tried each day, and the first of each sort."""
_ASKED = Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", ())


def _exchange(request: Request, response: Response | None, found: Any = ()) -> Exchange:
    return Exchange(
        seq=Seq(1),
        request_class=RequestClass.READ,
        verdict=VerdictKind.RECORDED,
        reason="mode record",
        request=request,
        started_ns=1,
        end_us=1,
        fingerprint=Fingerprint(bytes(16)),
        response=response,
        redactions=tuple(dict.fromkeys(found)),
    )


class _Recorded(Redactor):
    """Redacts what is recorded, then rewrites it under the same rules: nothing may change."""

    changed: list[Any]

    def request(self, request: HttpRequest) -> tuple[Request, tuple[Redaction, ...]]:
        kept, found = super().request(request)
        self._again(_exchange(kept, None, found))
        return kept, found

    def response(
        self, response: HttpResponse
    ) -> tuple[Response, tuple[Redaction, ...], tuple[str, ...]]:
        kept, found, warnings = super().response(response)
        self._again(_exchange(_ASKED, kept, found))
        return kept, found, warnings

    def _again(self, exchange: Exchange) -> None:
        rewriter = Rewriter(b"k" * 32)
        for _ in range(2):
            new, places = rewriter.exchange(exchange)
            if new is not exchange:
                type(self).changed.append((places, exchange, new))


class _Late(Redactor):
    """Stores what comes as it came, and redacts it later."""

    changed: list[Any]

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self._rewriter = Rewriter(key)

    def request(self, request: HttpRequest) -> tuple[Request, tuple[Redaction, ...]]:
        kept, found = super().request(request)
        new = self._rewritten(_exchange(request, None))  # type: ignore[arg-type]  # it is a Request
        if (new.request, set(new.redactions)) != (kept, set(found)):
            type(self).changed.append((kept, found, new))
        return new.request, found

    def response(
        self, response: HttpResponse
    ) -> tuple[Response, tuple[Redaction, ...], tuple[str, ...]]:
        kept, found, warnings = super().response(response)
        new = self._rewritten(_exchange(_ASKED, response))  # type: ignore[arg-type]  # it is a Response
        if (new.response, set(new.redactions)) != (kept, set(found)):
            type(self).changed.append((kept, found, new))
        return kept, found, warnings

    def _rewritten(self, exchange: Exchange) -> Exchange:
        new, _ = self._rewriter.exchange(exchange)
        again = Rewriter(b"k" * 32)
        again.exchange(new)
        assert again.exchange(new)[0] is new
        return new


def _tried() -> list[str]:
    """Give the names of the cases that are tried today."""
    firsts = {_sort(case): case["id"] for case in reversed(CASES)}
    often = {case["id"] for case in CASES[::_EVERY]} | set(firsts.values())
    return [case["id"] for case in CASES if FULL or case["id"] in often]


def _sort(case: dict[str, Any]) -> tuple[str, ...]:
    """Give what tells a sort of case: what makes it a secret, where it is, how it is accepted, and which keys it has."""
    made = str(case["value"].get("make")) if isinstance(case.get("value"), dict) else ""
    keys = sorted(case.keys() & {"begin", "each", "also", "steps", "text", "wrap", "values"})
    return (case["kind"], case["where"], str(case.get("accept")), made, *keys)


@pytest.mark.parametrize("name", _tried())
@pytest.mark.parametrize("how", [_Recorded, _Late])
def test_rewriting_is_recording_later(
    monkeypatch: pytest.MonkeyPatch, name: str, how: type[_Recorded | _Late]
) -> None:
    """Byte for byte."""
    how.changed = []
    monkeypatch.setattr(secret_search, "Redactor", how)
    list(secret_search.formats(full=FULL, names=[name]))
    assert how.changed == []
