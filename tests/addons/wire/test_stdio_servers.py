"""The sockets of servers on standard input and output: one a connection, and only in a folder of ours."""

import pytest
from mitmproxy import connection, http
from mitmproxy.test import tflow

from playhead.addons.wire.stdio_servers import SOCKET_FIELD, StdioServers
from playhead.tape.canonical.json_rpc_client_ids import STDIO_HOST


def ask(client: connection.Client, name: str | None, host: str = STDIO_HOST) -> http.HTTPFlow:
    """A request that names a socket."""
    flow = tflow.tflow(req=http.Request.make("POST", f"http://{host}/"))
    flow.client_conn = client
    if name is not None:
        flow.request.headers[SOCKET_FIELD] = name
    return flow


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", True),
        ("0123456789abcdefghijklmnopqrstuv", True),
        ("0123456789abcdefghijklmnopqrstuvw", False),
        ("", False),
        ("A", False),
        ("..", False),
        ("../a", False),
        ("a/b", False),
        ("/run/docker.sock", False),
        ("a\n", False),
        (None, False),
    ],
)
def test_a_name_is_a_file_of_our_folder(name: str | None, found: bool) -> None:
    """Or leads nowhere; who reads the request later sees no such field."""
    servers, client = StdioServers(), tflow.tclient_conn()
    folder = servers.folder
    flow = ask(client, name)
    try:
        servers.requestheaders(flow)
        assert servers.find(client) == (folder / str(name) if found else None)
        assert SOCKET_FIELD not in flow.request.headers
    finally:
        servers.close()


def test_only_the_host_of_such_servers_names_a_socket() -> None:
    """To others the field is one like any other."""
    servers, client = StdioServers(), tflow.tclient_conn()
    flow = ask(client, "a", "api.test")
    servers.requestheaders(flow)
    assert flow.request.headers[SOCKET_FIELD] == "a"
    assert servers.find(client) is None


def test_a_client_that_has_left_has_no_socket() -> None:
    """Nor has any once the folder is gone, which is made anew where it is asked for."""
    servers, client, other = StdioServers(), tflow.tclient_conn(), tflow.tclient_conn()
    other.id = "another"
    first = servers.folder
    assert servers.folder == first
    for one in (client, other):
        servers.requestheaders(ask(one, "a"))
    servers.client_disconnected(client)
    assert (servers.find(client), servers.find(other)) == (None, first / "a")
    servers.close()
    assert servers.find(other) is None
    assert not first.exists()
    servers.close()
    again = servers.folder
    assert again != first
    servers.close()
