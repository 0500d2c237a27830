"""A model call that is asked otherwise: what is sent and what is kept are the same."""

import json

from playhead.addons.branching.send_edited_request import ASKED_OTHERWISE, put_body, read_asked
from playhead.config import Mode
from playhead.tape.exchange import RequestClass
from playhead.tests.support.pending import NotedRun, make_pending

CHAT = "POST https://api.openai.com/v1/chat/completions"
BODY = json.dumps({"model": "m", "messages": []}).encode()
SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"


def test_another_body_is_sent_compared_and_kept() -> None:
    """With its own length, and a word of it on the tape."""
    run = NotedRun(mode=Mode.PLAYBACK)
    pending = make_pending(run, CHAT, RequestClass.INFERENCE, body=BODY)
    assert read_asked(pending).body == BODY
    request = put_body(pending, b'{"model": "other"}')
    assert (request.body, pending.flow.request.content) == (b'{"model": "other"}',) * 2
    assert request.header(b"content-length") == b"18"
    assert pending.request is request
    assert pending.with_body().body == request.body
    assert pending.progress.warnings == [ASKED_OTHERWISE]


def test_a_secret_in_it_is_sent_and_not_kept() -> None:
    """It is redacted as what comes from a client."""
    run = NotedRun(mode=Mode.PLAYBACK)
    pending = make_pending(run, CHAT, RequestClass.INFERENCE, body=BODY)
    body = json.dumps({"model": "m", "api_key": SECRET}).encode()
    request = put_body(pending, body)
    assert pending.flow.request.content == body
    assert SECRET.encode() not in request.body
