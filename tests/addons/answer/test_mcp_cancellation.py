"""Whether a client that leaves had cancelled its call before, and so ignores what is still to be played."""

from dataclasses import replace
from pathlib import Path

import pytest

from playhead.addons.answer.partial_delivery import note_left
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import Chunk, Exchange, Fingerprint, Headers, RequestClass, Seq
from playhead.tape.matching.cursor import Hit
from playhead.tape.playback.script import Steps, script
from playhead.tape.policy.revise import Recognised
from playhead.tape.records.events import EventKind
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_exchange, make_response, write_run
from playhead.tests.support.pending import make_pending

WHAT = "POST https://api.test/mcp"
CALL = b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "pay"}}'
ERROR = b'data: {"jsonrpc": "2.0", "id": 6, "error": {"code": -32800}}\n\n'
EVENTS: Headers = ((b"Content-Type", b"text/event-stream"),)


def _notice(request: bytes) -> bytes:
    told = b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": %s}}'
    return told % request


def _in_session(exchange: Exchange, session: bytes) -> Exchange:
    headers = (*exchange.request.headers, (b"Mcp-Session-Id", session))
    return replace(exchange, request=replace(exchange.request, headers=headers))


@pytest.mark.parametrize(
    ("notice", "session", "came", "left"),
    [
        (_notice(b"6"), b"s1", True, False),
        (_notice(b"7"), b"s1", True, True),
        (_notice(b"6"), b"s2", True, True),
        (_notice(b"6"), b"s1", False, True),
        (CALL.replace(b"6", b"8"), b"s1", True, True),
    ],
    ids=["cancelled", "another call", "another session", "not yet", "something else"],
)
async def test_a_client_may_leave_what_comes_after_it_has_cancelled_its_call(
    tmp_path: Path, notice: bytes, session: bytes, came: bool, left: bool
) -> None:
    """Whether it takes the error is chance; any other answer that comes late it would have taken."""
    response = make_response(ERROR, headers=EVENTS, chunks=(Chunk(9000, len(ERROR), after=2),))
    effect = RequestClass.EFFECT
    call = _in_session(make_exchange(1, WHAT, body=CALL, response=response, kind=effect), b"s1")
    told = _in_session(
        make_exchange(2, WHAT, body=notice, response=make_response(b"", 202)), session
    )
    with Store.open(tmp_path) as store:
        tape = await write_run(store, "tape", [call, told])
        run = await store.runs.create("tape", mode="playback", at_ns=2, parent=tape)
        open_run = OpenRun(Mode.PLAYBACK, Config(), Redactor(b"key"), store, run, tape)
        assert open_run.playback is not None
        if came:
            open_run.playback.cursor.take(Fingerprint(b"2"), Hit(Seq(2)))
        pending = make_pending(open_run, WHAT, effect, body=CALL)
        pending.revise(Recognised(Seq(1), "on tape"))
        pending.playing.play(Steps(script(call, 1.0)))
        assert pending.playing.steps is not None
        pending.playing.steps.take()  # its head
        note_left(pending)
        run = await store.runs.seal(run, reason="a test", at_ns=3)
        found = [one for one in store.events.all(run) if one.kind is EventKind.DIVERGED]
    assert bool(found) is left
