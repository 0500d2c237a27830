"""A link is opened by nobody else: all users of a machine read the command line of a browser that was given one."""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.proxy.control.http import caller
from playhead.proxy.control.http.caller import own_users, require_own_user
from playhead.proxy.control.http.error_body import ControlError
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.refund_store import write_refund_store

_ENDS = ("127.0.0.1", 5000), ("127.0.0.1", 80)
_NOBODY = 65534


def test_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ourselves, root, and who cannot be seen are not: over SSH nobody's user is told."""
    for user in (os.geteuid(), os.getuid(), 0, None):
        monkeypatch.setattr(caller, "find_user", lambda *_, user=user: user)
        require_own_user(*_ENDS)
    monkeypatch.setattr(caller, "find_user", lambda *_: _NOBODY)
    with pytest.raises(ControlError) as caught:
        require_own_user(*_ENDS)
    assert caught.value.status == 403
    require_own_user("", "/run/pages")  # by a path


def test_who_became_root_is_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo playhead ui` is for the browser of the person."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert 1000 in own_users({"SUDO_UID": "1000"})
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    assert 1000 not in own_users({"SUDO_UID": "1000"})
    assert own_users({"SUDO_UID": "x"}) == {0, 7, os.getuid()}


def test_a_thief_of_another_user_gets_nothing(tmp_path: Path) -> None:
    """And the link is as good as before."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    with Ui(write_refund_store(tmp_path / "store")) as ui:
        parts = urlsplit(ui.link)
        head = f"GET {parts.path}?{parts.query} HTTP/1.0\r\nhost: {ui.printed}\r\n\r\n"
        with _socket_of(_NOBODY) as thief:
            thief.connect(("127.0.0.1", ui.port))
            thief.sendall(head.encode())
            answer = thief.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.0 403 ")
        assert b"another user of this machine" in answer
        assert [one for one in (b"location:", b"set-cookie:") if one in answer.lower()] == []
        assert ui.open_session().startswith("playhead=")


def _socket_of(user: int) -> socket.socket:
    """Open a socket as another user, as whose it stands in the kernel's table."""
    os.seteuid(user)
    try:
        return socket.socket()
    finally:
        os.seteuid(0)
