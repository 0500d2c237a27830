"""How an answer that is recorded begins: which coding was asked for, and what is known of it by its head."""

import pytest
from mitmproxy import http

from playhead.addons.recording.begin_answer import begin_answer, wants_identity
from playhead.config import loads
from playhead.tape.exchange import RequestClass
from playhead.tests.support.pending import NotedRun, make_pending


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (RequestClass.INFERENCE, "inference"),
        (RequestClass.READ, "reads"),
        (RequestClass.EFFECT, "effects"),
    ],
)
@pytest.mark.parametrize("wanted", ["identity", "as-asked"])
async def test_an_answer_without_a_coding_is_asked_for_by_class(
    kind: RequestClass, key: str, wanted: str
) -> None:
    """Each class has its own key."""
    run = NotedRun(loads(f"upstream_encoding: {{{key}: {wanted}}}"))
    assert wants_identity(make_pending(run, kind=kind)) == (wanted == "identity")


async def test_telemetry_is_sent_as_its_client_asks() -> None:
    """It has no key."""
    assert not wants_identity(make_pending(NotedRun(), kind=RequestClass.TELEMETRY))


@pytest.mark.parametrize(
    ("method", "status", "headers", "streams", "known"),
    [
        ("GET", 200, {"content-length": "7"}, True, (False, 7)),
        ("GET", 200, {}, True, (False, -1)),
        ("HEAD", 200, {"content-length": "7"}, True, (False, -1)),
        ("POST", 200, {"content-type": "Text/Event-Stream; charset=utf-8"}, True, (True, -1)),
        ("GET", 101, {"content-length": "7"}, False, (False, -1)),
    ],
    ids=["length", "no length", "head alone", "events", "switch of protocols"],
)
async def test_an_answer_is_described_by_its_head(
    method: str, status: int, headers: dict[str, str], streams: bool, known: tuple[bool, int]
) -> None:
    """Whether it is an event stream, and how many bytes were announced; -1 where that is not known."""
    pending = make_pending(NotedRun(), f"{method} https://api.test/x")
    answer = http.Response.make(status, b"")
    answer.headers = http.Headers([(k.encode(), v.encode()) for k, v in headers.items()])
    begin_answer(pending, answer)
    assert pending.answer.head_us > 0
    assert bool(answer.stream) is streams
    assert (pending.answer.event_stream, pending.answer.announced) == known
