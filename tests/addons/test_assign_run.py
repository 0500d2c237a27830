"""Who a client is: credentials of the proxy, read once, and taken out before anybody else sees them."""

import base64
from typing import Any, cast

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from playhead.addons.assign_run import Identify, Leave, parse_credentials
from playhead.addons.run.registry import Rejected, RunRegistry


def basic(text: str) -> str:
    """Credentials as a client writes them."""
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None),
        ("", None),
        ("Basic", None),
        ("Basic !!!", None),
        ("Bearer abc", None),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), None),
        (basic("run:token"), ("run", "token")),
        (basic("run:to:ken"), ("run", "to:ken")),
        (basic("run"), ("run", "")),
        (basic("run:"), ("run", "")),
        (basic(":token"), None),
        (basic(""), None),
        (basic("Läufe:ß"), ("Läufe", "ß")),
        ("bAsIc " + base64.b64encode(b"run:token").decode(), ("run", "token")),
    ],
)
def test_credentials_are_a_run_and_a_token(
    header: str | None, found: tuple[str, str] | None
) -> None:
    """The token may hold colons; what cannot be read is none."""
    assert parse_credentials(header) == found


class Registry:
    """Stands in for the runs: it notes who was assigned, and rejects whoever it is told to."""

    def __init__(self, rejected: Rejected | None = None) -> None:
        self.assigned: list[tuple[str, str] | None] = []
        self.left: list[Any] = []
        self._rejected = rejected

    async def assign(self, client: Any, credentials: tuple[str, str] | None) -> Rejected | None:
        self.assigned.append(credentials)
        return self._rejected

    def leave(self, client: Any) -> None:
        self.left.append(client)


def make_flow(credentials: str | None, *, left: bool = False) -> http.HTTPFlow:
    """A request of one client."""
    flow = tflow.tflow()
    flow.client_conn.id = "client"
    flow.client_conn.timestamp_end = 1.0 if left else None
    if credentials is not None:
        flow.request.headers["proxy-authorization"] = credentials
    flow.request.headers["proxy-connection"] = "keep-alive"
    return flow


async def ask(identify: Identify, flow: http.HTTPFlow) -> None:
    """Have the head of a request looked at."""
    waiting = identify.requestheaders(flow)
    if waiting is not None:
        await waiting


RUN, OTHER = basic("run:t"), basic("other:t")


@pytest.mark.parametrize(
    ("asked", "assigned"),
    [
        ([RUN], [("run", "t")]),
        ([RUN, RUN, RUN], [("run", "t")]),
        ([RUN, None], [("run", "t")]),
        ([None, None], [None]),
        ([RUN, OTHER], [("run", "t"), ("other", "t")]),
        ([None, RUN], [None, ("run", "t")]),
    ],
)
async def test_a_client_is_bound_once_for_each_name(
    asked: list[str | None], assigned: list[tuple[str, str] | None]
) -> None:
    """A further request of the same name, or of none, says nothing new; the fields go in any case."""
    registry = Registry()
    identify = Identify(cast("RunRegistry", registry))
    for credentials in asked:
        flow = make_flow(credentials)
        await ask(identify, flow)
        assert flow.response is None
        assert not {"proxy-authorization", "proxy-connection"} & set(flow.request.headers)
    assert registry.assigned == assigned


async def test_a_tunnel_binds_its_client() -> None:
    """What comes through it is not asked again."""
    registry = Registry()
    identify = Identify(cast("RunRegistry", registry))
    await identify.http_connect(make_flow(RUN))
    await ask(identify, make_flow(None))
    assert registry.assigned == [("run", "t")]


async def test_a_client_that_has_left_is_forgotten() -> None:
    """Before or after it was bound: another connection may get its id."""
    for flow in (make_flow(RUN), make_flow(RUN, left=True)):
        registry = Registry()
        identify = Identify(cast("RunRegistry", registry))
        await ask(identify, flow)
        identify.client_disconnected(flow.client_conn)
        await ask(identify, flow)
        assert len(registry.assigned) == 2


@pytest.mark.parametrize(("status", "challenged"), [(407, True), (403, False), (503, False)])
async def test_a_rejected_client_is_told_why(status: int, challenged: bool) -> None:
    """With a challenge where other credentials would do."""
    identify = Identify(cast("RunRegistry", Registry(Rejected("no such run", status))))
    flow = make_flow(RUN)
    await ask(identify, flow)
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.content) == (
        status,
        b"playhead: no such run\n",
    )
    assert ("proxy-authenticate" in flow.response.headers) == challenged
    await ask(identify, flow)  # it is not known now
    assert flow.response.status_code == status


def test_a_client_leaves_its_run() -> None:
    """The run is told which."""
    registry, client = Registry(), tflow.tclient_conn()
    Leave(cast("RunRegistry", registry)).client_disconnected(client)
    assert registry.left == [client]
