"""What the control host answers: the run of a connection, and nothing that it was not asked."""

import json
from typing import Any

import pytest

from playhead.addons.control_host import Control
from playhead.addons.wire.stdio_servers import StdioServers
from playhead.config import Mode
from playhead.tape.policy.decide import Action
from playhead.tests.support.pending import NotedRun, make_pending

HOST = "http://playhead.internal"


def answer(
    what: str, mode: Mode = Mode.RECORD, action: Action | None = Action.CONTROL
) -> tuple[int, Any] | None:
    """Ask; give status and body."""
    pending = make_pending(NotedRun(mode=mode), what, action=action)
    servers = StdioServers()
    Control(servers).request(pending.flow)
    servers.close()
    response = pending.flow.response
    if response is None:
        return None
    assert response.headers["content-type"] == "application/json"
    return response.status_code, json.loads(response.content or b"null")


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("path", ["/", "/run"])
def test_the_run_of_a_connection_is_told(path: str, mode: Mode) -> None:
    """Whatever its mode."""
    status, told = answer(f"GET {HOST}{path}", mode) or (0, {})
    assert (status, told["mode"], told["requests"]) == (200, mode.value, 1)
    assert (told["run"], told["tape"], told["problem"]) == (None, None, None)
    assert "sockets" not in told


@pytest.mark.parametrize(
    ("mode", "told"), [(Mode.RECORD, True), (Mode.PLAYBACK, False), (Mode.PASSTHROUGH, False)]
)
def test_where_servers_on_a_pipe_are_reached_is_told_while_recording(
    mode: Mode, told: bool
) -> None:
    """A playback reaches none."""
    found = answer(f"GET {HOST}/stdio/s", mode)
    assert found is not None
    assert ("sockets" in found[1]) is told


def test_servers_of_a_name_are_counted_as_they_start() -> None:
    """Each name by itself; a name is that of a URL."""
    open_run, control, told = NotedRun(mode=Mode.PLAYBACK), Control(StdioServers()), []
    for name in ("s%2Fa", "t", "s%2Fa"):
        what = f"GET {HOST}/stdio/{name}"
        pending = make_pending(open_run, what, action=Action.CONTROL)
        control.request(pending.flow)
        assert pending.flow.response is not None
        told.append(json.loads(pending.flow.response.content or b"")["instance"])
    assert told == ["s%2Fa/1", "t/1", "s%2Fa/2"]


@pytest.mark.parametrize(
    "what", [f"POST {HOST}/", f"DELETE {HOST}/run", f"GET {HOST}/runs", f"GET {HOST}/run?x=1"]
)
def test_anything_else_is_unknown(what: str) -> None:
    """And says nothing of the run."""
    assert answer(what) == (404, {"error": "unknown; GET / gives the run of this connection"})


@pytest.mark.parametrize("action", [None, Action.FORWARD, Action.REFUSE, Action.SERVE])
def test_only_what_was_decided_to_be_for_the_control_host_is_answered(
    action: Action | None,
) -> None:
    """Another request goes its way."""
    assert answer(f"GET {HOST}/", action=action) is None


@pytest.mark.parametrize(
    ("body", "status", "noted"),
    [
        (b'{"outcome": "ok"}', 200, {"outcome": "ok", "why": ""}),
        (
            b'{"outcome": "failed", "text": "no stock"}',
            200,
            {"outcome": "failed", "why": "no stock"},
        ),
        (b'{"outcome": "fine"}', 422, None),
        (b'{"outcome": "ok", "text": 7}', 422, None),
        (b'{"outcome": ["ok"]}', 422, None),
        (b"[1]", 422, None),
        (b"\xff", 422, None),
        (b"", 422, None),
        (b'{"outcome": "ok", "text": "' + b"x" * 5000 + b'"}', 422, None),
    ],
)
def test_an_agent_tells_the_outcome_of_its_run(
    body: bytes, status: int, noted: dict[str, str] | None
) -> None:
    """It is kept in the log of the run; what says something else is refused with what would be right."""
    assert posted("outcome", body) == (status, [noted] if noted is not None else [])


def posted(path: str, body: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Send something to the control host; give the status, and what was noted."""
    open_run = NotedRun()
    pending = make_pending(open_run, f"POST {HOST}/{path}", body=body, action=Action.CONTROL)
    pending.flow.request.raw_content = body
    servers = StdioServers()
    Control(servers).request(pending.flow)
    servers.close()
    assert pending.flow.response is not None
    return pending.flow.response.status_code, [data for _, data in open_run.noted]


@pytest.mark.parametrize(
    ("body", "noted"),
    [
        (b'{"plan": ["look"]}', '{"plan": ["look"]}'),
        (b' [1, "\xc3\xa9"] ', '[1, "\u00e9"]'),
        (b"7", "7"),
        (b'{"password": "Zx81kQ0vTn3LwR7pYc2m"}', None),
        (b'"' + b"x" * 70_000 + b'"', ""),
        (b"null", ""),
        (b"{", ""),
        (b"", ""),
        (b"\xff", ""),
    ],
    ids=["object", "list", "number", "secret", "too large", "null", "broken", "empty", "no text"],
)
def test_an_agent_has_its_state_kept(body: bytes, noted: str | None) -> None:
    """In the log of the run, without secrets; what is no JSON, or too large, is refused."""
    status, told = posted("snapshot", body)
    if noted == "":
        assert (status, told) == (422, [])
    elif noted is None:
        assert (status, "Zx81kQ0vTn3L" in str(told)) == (200, False)
    else:
        assert (status, told) == (200, [{"snapshot": noted}])
