"""No way out: the table of escapes, tried for real, as root and as somebody without rights."""

from typing import Any

import pytest

from playhead.tests.support.apart import told_by
from playhead.tests.support.counts import FULL
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.ways_out import NOT_EVERYWHERE, RACES, SINGLE

FILES = {"a file of the system", "a file of the home folder"}
"""Files are not isolated but with bubblewrap."""
NEED_RIGHTS = {
    *("raw icmp", "raw icmp ipv6", "packets", "old packets", "setns by /proc", "control groups"),
    *("netlink: a route", "netlink: loopback down and up", "netlink: a new device"),
    *("what is mounted, taken away", "the kernel's settings"),
    *("the kernel's settings by another /proc", "a device with a network", "a file by its number"),
    *("another process: its memory", "another process: tracing"),
    *("another process: a descriptor of it", "a message queue by its file"),
    *("another process: read at a distance", "another process: its io"),
    *("raw tcp", "raw udp", "raw anything", "raw ipv6 anything", "netlink: a rule"),
    *("netlink: a neighbour", "netlink: an address", "a device of our own", "a device elsewhere"),
    *("another root", "the name of the machine", "another user"),
}
"""Open on the bare machine for root alone, or where the machine lets users look at each other's programs."""
REFUSED = {"late/socket", "late/socket-packets"}
FEWEST = 140


def _run(uid: int) -> dict[str, Any]:
    found: dict[str, Any] = told_by("escapes", str(uid), timeout_s=240)
    return found


@pytest.fixture(scope="module", params=["root", "somebody"])
def tried(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """What was found in each place, for each sort of user."""
    if request.param == "root":
        need("root")
    return request.param, _run(0 if request.param == "root" else SOMEBODY)


def _open(place: dict[str, str]) -> set[str]:
    return {name for name, found in place.items() if found == "open"}


def test_the_tries_work_where_nothing_holds_them(tried: tuple[str, dict[str, Any]]) -> None:
    """On the bare machine each is open: what is closed in a sandbox is closed by it."""
    who, found = tried
    closed = set(found["bare"]) - _open(found["bare"])
    allowed = NOT_EVERYWHERE | RACES | (NEED_RIGHTS if who != "root" else set())
    assert {name for name in closed if not name.startswith(SINGLE)} <= allowed, found["bare"]
    assert len(found["bare"]) >= FEWEST
    assert len(found["bare"]) - len(closed) >= 80


def test_contained_nothing_but_files_is_open(tried: tuple[str, dict[str, Any]]) -> None:
    """Whoever listened at a path before is masked; whoever came later is refused, and named."""
    _, found = tried
    refused = found["contained"].pop("sockets refused")
    assert _open(found["contained"]) == FILES, found["contained"]
    assert {"/".join(row["path"].split("/")[-2:]) for row in refused} == REFUSED


def test_strict_nothing_is_open(tried: tuple[str, dict[str, Any]]) -> None:
    """Not one of them; files are isolated where that was asked for."""
    _, found = tried
    found["strict"].pop("sockets refused")
    assert _open(found["strict"]) == FILES, found["strict"]


def test_with_files_nothing_at_all_is_open(tried: tuple[str, dict[str, Any]]) -> None:
    """Neither the home folder is read, nor anything of the system written to."""
    _, found = tried
    need("bubblewrap")
    places = [place for place in ("contained, with files", "strict, with files") if place in found]
    assert len(places) == 2 if FULL else places
    for place in places:
        refused = found[place].pop("sockets refused")
        assert _open(found[place]) == set(), found[place]
        assert refused == [] or place.startswith("strict")
