"""No session begins under a name that other servers of the machine share: a browser sends its cookie to all of their ports."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.proxy.control.http.access import Guard, make_own_name
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.refund_store import write_refund_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_refund_store(tmp_path_factory.mktemp("own") / "store")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_a_link_leads_to_the_name_of_the_process(store: Path, host: str) -> None:
    """Before its token is used; there the session begins."""
    with Ui(store) as ui:
        parts = urlsplit(ui.link)
        asked = f"{parts.path}?{parts.query}"
        answer = ui.send("GET", asked, {"host": f"{host}:{ui.port}"})
        assert (answer.status, answer.field("set-cookie")) == (303, "")
        assert answer.field("location") == ui.link
        assert ui.open_session(answer.field("location")).startswith("playhead=")


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("127.0.0.1:80", "http://playhead-1.localhost:80"),
        ("localhost", "http://playhead-1.localhost:80"),
        ("playhead-1.localhost", ""),
        ("Playhead-1.LOCALHOST:80", ""),
        # Something of the user's stands before us.
        ("gates.example.com", ""),
    ],
)
def test_where_a_session_may_begin(host: str, place: str) -> None:
    """Under the process's own name, and under names that the configuration has."""
    names = frozenset(("127.0.0.1", "localhost", "playhead-1.localhost"))
    hosts = frozenset(("gates.example.com",))
    assert (
        Guard("t", "http", 80, names, hosts, "playhead-1.localhost").find_own_place(host) == place
    )
    assert Guard("t", "http", 80, names, hosts).find_own_place(host) == ""
    assert make_own_name() != make_own_name()
