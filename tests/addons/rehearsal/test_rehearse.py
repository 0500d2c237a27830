"""A recording put to the tape of another one, decided on as in a playback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.rehearsal.rehearse import Rehearsal, RehearsedRun, rehearse
from playhead.addons.rehearsal.render_report import render_rehearsal
from playhead.config import Config, Mode, loads
from playhead.config.profiles.client_profile_file import ProfileFile
from playhead.store import RunInfo, Store
from playhead.tape.exchange import Message, MessageKind, RequestClass, Seq
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.recordings import Asked, ask, record_run

Rehearse = Callable[..., Rehearsal]


def _open(store: Store, tape: RunInfo, config: Config) -> RehearsedRun:
    return RehearsedRun(Mode.PLAYBACK, config, Redactor(b"key"), store, None, tape)


@pytest.fixture
def put(tmp_path: Path) -> Rehearse:
    """Record two runs, and put the second to the tape of the first."""

    def compare(
        first: list[Asked],
        second: list[Asked],
        config: Config | None = None,
        words: dict[Seq, dict[str, str]] | None = None,
        **told: Any,
    ) -> Rehearsal:
        with Store.open(tmp_path / "store") as store:
            said = told.pop("said", ({}, {}))
            runs = (
                record_run(store, "a", first, websockets=said[0], **told),
                record_run(store, "b", second, websockets=said[1], **told),
            )
            return rehearse(_open(store, runs[0], config or Config()), *runs, words or {})

    return compare


def _outcome(made: Rehearsal) -> tuple[list[int], list[int]]:
    return [*made.served], [*made.refused]


def test_a_rule_makes_the_tape_answer(put: Rehearse) -> None:
    """Without it the first request is refused, with the place."""
    first, second = ([ask({"id": own}), ask({"n": 1})] for own in ("a", "b"))
    made = put(first, second)
    assert _outcome(made) == ([2], [1])
    assert made.first is not None
    assert [one.place for one in made.first.differences] == ["body $.id"]
    text = render_rehearsal(made, "a", "b", "this")
    assert text.startswith("Tried with this: the tape of a answers 1 of the 2 requests of b.")
    assert "seq 1  POST https://api.test/v1/runs" in text
    assert text.endswith('  body $.id: "a" | "b"')


def test_rules_are_those_of_the_configuration(put: Rehearse) -> None:
    """The tape is indexed anew in memory."""
    rules = loads('ignore: [{match: "*://api.test", json: [$.id]}]')
    assert _outcome(put([ask({"id": "a"})], [ask({"id": "b"})], rules)) == ([1], [])


def test_a_request_is_answered_as_often_as_it_was_recorded(put: Rehearse) -> None:
    """What is asked once more is refused, though an equal one is on the tape."""
    made = put([ask({"n": 1})], [ask({"n": 1}), ask({"n": 1})])
    assert _outcome(made) == ([1], [2])
    assert made.first is not None
    assert "was asked once more" in made.first.reason


@pytest.mark.parametrize(("known", "served"), [(False, [1]), (True, [1, 2, 3])])
def test_words_are_put_from_the_request_on_that_has_them(
    put: Rehearse, known: bool, served: list[int]
) -> None:
    """An agent that is replayed would have them from the tape."""
    first, second = (
        [ask({}, {"id": own}), ask({"thread": own}), ask({"again": own})]
        for own in ("thread_of_one", "thread_of_another")
    )
    words = {Seq(2): {"thread_of_another": "thread_of_one"}} if known else {}
    assert put(first, second, words=words).served == served


_LINKED = """
profile: mine
version: 1
client: mine
recognise: {user_agent: [mine]}
places:
  - match: POST *://*/v1/messages
    json: $.session
    regex: '^([0-9a-f]{16})$'
    linked: true
    reason: the id of the session
    client_version: 1.0
    recordings: [a, b]
"""


def _in_session(text: str, session: str) -> Asked:
    body = json.dumps({"text": text, "session": session * 16}).encode()
    headers = {"content-type": "application/json", "user-agent": "mine/1.0"}
    return make_request("https://api.anthropic.com/v1/messages", body, headers), make_response(
        b"ok"
    )


@pytest.mark.parametrize(
    ("sessions", "refused"), [("cc", []), ("cd", [2])], ids=["of one", "of two"]
)
def test_linked_ids_are_compared_over_the_run(
    put: Rehearse, sessions: str, refused: list[int]
) -> None:
    """A request under another id than the first has is refused, with the place."""
    profile = Config(profiles=(ProfileFile("mine.yaml", _LINKED),))
    first = [_in_session(text, "a") for text in ("one", "two")]
    second = [_in_session(text, own) for text, own in zip(("one", "two"), sessions, strict=True)]
    made = put(first, second, profile)
    assert made.refused == refused
    assert made.first is None or "body $.session" in made.first.reason


def test_a_request_before_the_answer_that_it_needs_is_refused(put: Rehearse) -> None:
    """The order of the tape counts as in a playback."""
    given = "order_of_the_tape_77"
    first = [ask({"n": 1}, {"id": given}), ask({"order": given})]
    made = put(first, [first[1], first[0]])
    assert _outcome(made) == ([2], [1])
    assert made.first is not None
    assert "sent before the answer that it depends on" in made.first.reason


def _says(*words: str) -> list[Message]:
    return [Message(n, True, MessageKind.TEXT, b'"%s"' % w.encode()) for n, w in enumerate(words)]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("one", "two"), ""),
        (("one", "three"), "message[1] of the client is not the one of exchange 1"),
        (("one",), "the client closed the WebSocket before message[1]"),
    ],
)
def test_messages_of_a_websocket_are_heard(
    put: Rehearse, words: tuple[str, ...], reason: str
) -> None:
    """One by one against those of the tape."""
    asked = [(make_request("https://api.test/v1/live"), make_response(status=101))]
    made = put(asked, asked, said=({1: _says("one", "two")}, {1: _says(*words)}))
    told = "" if made.first is None else made.first.reason
    assert told.startswith(reason)
    assert _outcome(made) == (([], [1]) if reason else ([1], []))


def test_telemetry_and_live_requests_are_left_out(put: Rehearse) -> None:
    """Neither is answered by the tape in a replay."""
    rules = loads(
        'classes: {telemetry: ["*://*/tell"]}\n'
        'live: [{match: "POST https://api.test/now", reason: a clock}]\nmode: playback'
    )
    host = {"host": "api.test"}
    extra = [
        (make_request(f"https://api.test/{path}", b"x", host), make_response())
        for path in ("tell", "now")
    ]
    made = put([ask()], [ask(), *extra], rules, kind=RequestClass.READ)
    assert (made.asked, _outcome(made)) == (1, ([1], []))


def test_nothing_is_written(tmp_path: Path) -> None:
    """A store that was opened for reading is enough."""
    with Store.open(tmp_path) as store:
        for name in ("a", "b"):
            record_run(store, name, [ask({"n": 1})])
    with Store.open(tmp_path, readonly=True) as store:
        runs = store.runs.get("a"), store.runs.get("b")
        assert rehearse(_open(store, runs[0], Config()), *runs, {}).asked == 1
        assert [run.id for run in store.runs.all()] == ["a", "b"]
