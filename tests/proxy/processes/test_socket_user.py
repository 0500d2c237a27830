"""The user behind a connection is told, whichever way the addresses are written."""

import os
import socket
from pathlib import Path

import pytest

from playhead.proxy.processes import socket_user
from playhead.proxy.processes.socket_user import find_user

_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_our_own_connection_is_ours(host: str) -> None:
    """As it stands in the kernel's table."""
    if not socket_user.TABLES[0].exists():
        pytest.skip("needs /proc/net/tcp")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listens = socket.AF_INET6 if host == "::1" else socket.AF_INET
    with (
        socket.create_server(
            ("::1" if host == "::1" else "127.0.0.1", 0), family=listens
        ) as server,
        socket.socket(family) as client,
    ):
        client.connect((host, server.getsockname()[1]))
        taken, peer = server.accept()
        with taken:
            assert find_user(peer[:2], taken.getsockname()[:2]) == os.geteuid()
            assert find_user((peer[0], 1), taken.getsockname()[:2]) is None


def test_a_socket_that_nobody_has_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says 0, which would be root."""
    table = tmp_path / "tcp"
    ends = "0100007F:A3E9 0100007F:1F90"
    rest = "01 00000000:00000000 00:00000000 00000000"
    monkeypatch.setattr(socket_user, "TABLES", (table, tmp_path / "none"))
    peer, local = ("127.0.0.1", 0xA3E9), ("127.0.0.1", 8080)
    for user, inode, expected in ((1000, 77, 1000), (0, 0, None), (65534, 5, 65534)):
        table.write_text(f"{_HEAD}   0: {ends} {rest}  {user}        0 {inode} 1 0 20 4 30 10 -1\n")
        assert find_user(peer, local) == expected
    assert find_user(local, peer) is None
