"""No session begins under a name that other servers of the machine share or know: a browser sends its cookie to all of their ports."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.proxy.control.http.access import Guard, make_own_name
from playhead.tests.support.browser import Browser
from playhead.tests.support.firefox import Firefox
from playhead.tests.web.cases.page_process import Ui
from playhead.tests.web.cases.refund_store import write_refund_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_refund_store(tmp_path_factory.mktemp("own") / "store")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_a_link_leads_to_the_name_of_the_process(store: Path, host: str) -> None:
    """Its token is used up there, and becomes one of that name; there the session begins."""
    with Ui(store) as ui:
        parts = urlsplit(ui.link)
        assert parts.hostname == "127.0.0.1"
        target = f"{parts.path}?{parts.query}"
        answer = ui.send("GET", target, {"host": f"{host}:{ui.port}"})
        assert (answer.status, answer.field("set-cookie")) == (303, "")
        led = urlsplit(answer.field("location"))
        assert re.fullmatch(rf"playhead-[0-9a-f]{{32}}\.localhost:{ui.port}", led.netloc)
        assert led.query != parts.query
        again = ui.send("GET", target, {"host": f"{host}:{ui.port}"})
        assert (again.status, again.field("location")) == (401, "")
        opened = ui.send("GET", f"{led.path}?{led.query}", {"host": led.netloc})
        assert opened.field("set-cookie").startswith("playhead=")


def test_the_name_is_told_for_a_valid_token_alone(store: Path) -> None:
    """Whatever a stranger asks, the session's name is in no answer."""
    with Ui(store) as ui:
        assert ui.led
        name = ui.host.partition(":")[0]
        used = ui.link.partition("?")[2]
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            for target in ("/", "/?token=x", "/runs?token=", f"/runs?{used}", "/data/gates", "/no"):
                for host in (ui.printed, f"localhost:{ui.port}", "evil.test", f"a.{ui.host}"):
                    answer = ui.send(method, target, {"host": host})
                    heads = [text for field in answer.fields for text in field]
                    assert answer.status >= 400
                    told = " ".join([*heads, answer.text]).replace(host, "")
                    assert name not in told, (method, target, host)


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


@pytest.mark.parametrize("opener", [Browser, Firefox])
async def test_a_browser_that_opens_the_link_has_a_session(
    store: Path, tmp_path: Path, opener: type[Browser] | type[Firefox]
) -> None:
    """From a page of another site, too, as of a mail: a browser keeps a strict cookie back while it follows redirects from there."""
    with Ui(store) as ui:
        mail = tmp_path / "mail.html"
        mail.write_text(f"<meta http-equiv=refresh content='0; url={ui.link}'>")
        async with opener.open(tmp_path / "profile") as browser:
            await browser.go(mail.as_uri())
            await browser.until("document.querySelector('h1')?.textContent === 'Runs'")
            assert await browser.run("location.pathname + location.search") == "/runs"
            name = await browser.run("location.hostname")
            assert re.fullmatch(r"playhead-[0-9a-f]{32}\.localhost", name)
