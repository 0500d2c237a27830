"""What came over a wire can be neither kept nor shown: the types of requests and answers say so, and mypy reads them."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given

import playhead
from playhead.tape.exchange import Exchange, HttpRequest, HttpResponse
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import raw_request, raw_response
from playhead.tests.support.import_graph import modules
from playhead.tests.support.strategies import exchanges

ROOT = Path(playhead.__file__).resolve().parent

_BEGINNING = """
from dataclasses import replace
from playhead.addons.run.run_state import Stopped
from playhead.store import Record, Store
from playhead.tape.records.failed_attempt import Attempt, AttemptKind
from playhead.tape.exchange import (
    Close, Ending, Exchange, Fault, FaultKind, HttpRequest, Interim, Phase, RawClose, RawWebSocketSummary, Message, RawAnswer, RawInterim, RawMessage, RawRequest, RawResponse, Request, Response, Seq,
)
from playhead.tape.redaction.redactor import Redactor

def attempt(
    raw: RawRequest, request: Request, raw_answer: RawResponse, answer: Response, exchange: Exchange, store: Store,
    said: RawMessage, early: RawInterim, redactor: Redactor, whole: RawAnswer, hint: tuple[Interim, ...],
    words: str, end: RawClose, talk: RawWebSocketSummary,
) -> None:
"""
_KEPT = "Exchange(Seq(1), exchange.request_class, exchange.verdict, '', {}, 0, 0, exchange.fingerprint, {}, interim={})"
_ATTEMPTS = {
    "keep a request as it came": _KEPT.format("raw", "answer", "hint"),
    "keep an answer as it came": _KEPT.format("request", "raw_answer", "hint"),
    "keep an interim answer as it came": _KEPT.format("request", "answer", "(early,)"),
    "keep a message as it came": "store.messages.append(1, 1, 0, said)",
    "keep a message without redacting it": "store.messages.record(1, 1, 0, said, lambda came: came)",
    "keep an answer as it came in the place of its exchange": "Record(whole, b'', None)",
    "name a request as it came so": "kept: Request = raw",
    "name an answer as it came so": "told: Response = raw_answer",
    "name a message as it came so": "one: Message = said",
    "keep the words of a fault as they came": "Fault(FaultKind.CUT, Phase.BODY, words, 0)",
    "keep the reason of a closing frame as it came": "Close(0, True, 1000, words)",
    "keep how a WebSocket ended as it came": "replace(exchange, websocket=talk)",
    "name how a WebSocket ended as it came so": "over: Close = end",
    "keep the detail of an attempt as it came": "Attempt(AttemptKind.CUT_REQUEST, '', 1, detail=words)",
    "keep the reason of a stop as it came": "Stopped('', 0, words, 0)",
    "keep the command of an agent as it came": "store.runs.create('', mode='', at_ns=0, agent=words)",
    "keep a refused answer's violation as it came": "replace(exchange, withheld=words)",
}
_FINE = {
    "keep both": _KEPT.format("request", "answer", "hint"),
    "look at a request as it came": "seen: HttpRequest = raw",
    "keep a message whose secrets are replaced": "store.messages.append(1, 1, 0, redactor.message(said))",
    "keep a message as it is redacted": "store.messages.record(1, 1, 0, said, redactor.message)",
    "keep the words of a fault without secrets": "Fault(FaultKind.CUT, Phase.BODY, redactor.redact_text(words), 0)",
    "keep how a WebSocket ended without secrets": "replace(exchange, websocket=redactor.websocket(talk))",
    "keep an interim answer whose secrets are replaced": "held: tuple[Interim, ...] = redactor.interim((early,))[0]",
}

_MADE_IN = {
    "addons/answer/refuse.py": "an answer of ours, and the place of a request that could not be read",
    "addons/deciding/due_failed_tunnels.py": "a tunnel: a host and its port",
    "addons/faults/short_circuit.py": "no answer",
    "addons/serving/play.py": "no answer",
    "proxy/experiments/save_faulted_run.py": "an answer of ours, which a fault gave",
    "tape/faults/status.py": "what a rule injected, from the log",
    "tape/records/codec.py": "what was kept",
    "tape/redaction/redact_heads.py": "what is left without secrets",
    "tape/redaction/redactor.py": "what is left without secrets",
    "timeline/checks/secrets.py": "the text that is searched",
    "timeline/steps/websocket_calls.py": "messages that were kept",
}
"""Where a request or an answer that may be kept is made, and of what."""
_TEXT_MADE_IN = {
    "addons/answer/discard_telemetry.py": "words of ours",
    "addons/faults/short_circuit.py": "what a rule injects",
    "addons/run/request_contracts.py": "nothing",
    "addons/serving/save_served_exchange.py": "words of ours",
    "addons/stop.py": "who stopped a run, and a reason that is redacted",
    "addons/websockets/player.py": "nothing",
    "addons/wire/upstream_failure.py": "the first line of a redacted text",
    "proxy/engine/http/recording_stream.py": "what a rule injects",
    "proxy/experiments/save_faulted_run.py": "words of ours",
    "tape/exchange.py": "nothing",
    "tape/faults/cut.py": "words of ours",
    "tape/faults/reset.py": "words of ours",
    "tape/records/failed_attempt.py": "words of ours",
    "tape/records/codec.py": "what was kept",
    "tape/redaction/redactor.py": "what is left without secrets",
    "tape/redaction/rewriting/rewriter.py": "what is left without secrets",
    "timeline/formats/jsonl.py": "nothing: the words come by themselves",
    "timeline/reading/substituted_answer.py": "words of ours",
}
"""Where a text that may be kept is made, and of what."""
_OTHER_MESSAGES = ("tape/dialects/", "timeline/steps/", "proxy/sandbox/channel.py", "examples/")
"""Where a `Message` is something else: of a model, of a sandbox."""
_CALLS = re.compile(r"\b(?:Request|Response|Message|Interim|RedactedText)[\s\\]*\(")
"""Without one of these a file makes none of them, and need not be parsed."""


REDACTOR = Redactor(b"k" * 32)
_SEARCHED = {"headers", "trailers", "target", "reason", "body", "chunks", "secrets"}
"""Fields in which secrets are replaced, and those that say where."""


@pytest.fixture(scope="module")
def complaints(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of every attempt, each in a line of its own; of modules that are as they were it knows since last time."""
    pytest.importorskip("mypy")
    lines = [*_ATTEMPTS.values(), *_FINE.values()]
    folder = tmp_path_factory.mktemp("types")
    # Each in a block of its own, so that none is a second definition.
    program = _BEGINNING + "".join(f"    if raw.port == {at}: {line}\n" for at, line in enumerate(lines))  # fmt: skip
    (folder / "attempts.py").write_text(program)
    (folder / "playhead").symlink_to(ROOT)  # mypy follows no package that is installed to be edited
    kept = getattr(request.config, "cache", None)
    cache = kept.mkdir("mypy") if kept is not None else folder / "cache"
    options = ("--no-error-summary", "--follow-imports=silent", "--cache-dir", cache)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, folder / "attempts.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def _line_of(text: str) -> int:
    every = [*_ATTEMPTS.values(), *_FINE.values()]
    return len(_BEGINNING.splitlines()) + every.index(text) + 1


@pytest.mark.parametrize("attempt", _ATTEMPTS)
def test_mypy_rejects_what_came_over_a_wire(complaints: str, attempt: str) -> None:
    """A request or an answer whose secrets are still in it is of another type than what may be kept."""
    line = _line_of(_ATTEMPTS[attempt])
    found = [one for one in complaints.splitlines() if f"attempts.py:{line}: error" in one]
    assert any("incompatible type" in one or "Incompatible types" in one for one in found), complaints  # fmt: skip


@pytest.mark.parametrize("attempt", _FINE)
def test_mypy_accepts_what_may_be_kept(complaints: str, attempt: str) -> None:
    """The same calls pass where the secrets have been replaced, as the redactor's types say."""
    assert f"attempts.py:{_line_of(_FINE[attempt])}: error" not in complaints


def test_what_may_be_kept_is_made_in_known_places() -> None:
    """Of what came over a wire only the redactor makes it; every other place makes it of nothing that came."""
    found, texts = set(), set()
    for name in map(str, modules()):
        text = (ROOT / name).read_text("utf-8")
        if not _CALLS.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            made = node.func if isinstance(node, ast.Call) else None
            if isinstance(made, ast.Name) and made.id in ("Request", "Response"):
                found.add(name)
            if isinstance(made, ast.Name) and made.id in ("Message", "Interim"):
                assert name in _MADE_IN or name.startswith(_OTHER_MESSAGES), name
            if isinstance(made, ast.Name) and made.id == "RedactedText":
                texts.add(name)
    assert found == set(_MADE_IN)
    assert texts == set(_TEXT_MADE_IN)


@given(exchanges())
def test_the_redactor_loses_no_field(exchange: Exchange) -> None:
    """It makes new values field by field: those in which it replaces nothing are as they came."""
    asked, answer = exchange.request, exchange.response
    kept = REDACTOR.request(raw_request(asked))[0]
    for field in {one.name for one in fields(HttpRequest)} - _SEARCHED:
        assert getattr(kept, field) == getattr(asked, field), field
    if answer is not None:
        said = REDACTOR.response(raw_response(answer))[0]
        for field in {one.name for one in fields(HttpResponse)} - _SEARCHED:
            assert getattr(said, field) == getattr(answer, field), field
