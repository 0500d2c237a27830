"""In playback nothing leaves, whatever a client does and whatever is broken above the guard.

Each run of `leak_runner.py` has a network of its own. One has the guard whole; in the others a part of
it is taken out, which has to show: a guard that nobody misses guards nothing.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .leak_runner import CASES, LAYERS, PROFILES

Report = dict[str, Any]

RUNS: dict[str, tuple[list[str], list[str]]] = {
    "whole": ([], list(PROFILES)),
    "without sockets": (["sockets"], ["eager", "loose", "ignored"]),
    "without requests": (["requests"], ["shipped"]),
    "without resolver": (["resolver"], ["shipped"]),
    "without any": (list(LAYERS), ["eager", "loose"]),
}
"""What is taken out of the guard, and the profiles to try; the whole one is tried in all of them."""

_POOLED = {"pooled_connection", "pooled_tls_connection"}
_NEVER = {"no_protocol_at_all"}
"""Names no destination, so that there is nowhere to leave to."""


@pytest.fixture(scope="session")
def report() -> Callable[[str], Report]:
    """Give what was seen in a run by its name; all of them are run at once."""
    runner = [sys.executable, "-m", "playhead.tests.proxy.engine.leak_runner", json.dumps(RUNS)]
    done = subprocess.run(runner, capture_output=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr.decode()
    reports: dict[str, Report] = json.loads(done.stdout)

    def get(name: str) -> Report:
        found = reports[name]
        if "impossible" in found:
            pytest.skip(f"namespaces of its own are not to be had here: {found['impossible']}")
        return found

    return get


def _leaking(report: Report) -> set[str]:
    return {visit["case"] for visit in report["visits"] if visit["left"]}


@pytest.mark.parametrize("case", [case.name for case in CASES])
def test_nothing_leaves(case: str, report: Callable[[str], Report]) -> None:
    """No connection, no byte, no datagram, no look-up: in every profile, with the addons broken too."""
    visits = [visit for visit in report("whole")["visits"] if visit["case"] == case]
    assert {visit["broken"] for visit in visits} == {False, True}
    assert [visit for visit in visits if visit["left"]] == []


def test_nothing_leaves_to_anywhere_else(report: Callable[[str], Report]) -> None:
    """Nothing is looked up or reached that nobody asked for; the kernel has counted the same."""
    whole = report("whole")
    assert {visit["profile"] for visit in whole["visits"]} == set(PROFILES)
    assert whole["stray"] == {}
    assert whole["kernel"] == whole["opened"]


@pytest.mark.parametrize(
    ("case", "seen"),
    [
        # on the tape
        ("plain_get_on_tape", "200"),
        ("tls_on_tape", "200"),
        # not on it
        ("plain_get", "424"),
        ("absolute_https", "424"),
        ("exhausted_tape", "424"),
        ("unknown_tape", "424"),
        ("tls_not_on_tape", "424"),
        ("tls_of_an_unknown_tape", "424"),
        ("h2_over_tls", "424"),
        ("websocket", "424"),
        ("websocket_over_tls", "424"),
        ("h2c_upgrade", "424"),
        ("big_body", "424"),
        ("pooled_connection", "424"),
        ("pooled_tls_connection", "424"),
        ("client_replay", "424"),
        # a hook raises
        ("requestheaders_raises_sync_first", "424"),
        ("requestheaders_raises_sync_last", "424"),
        ("requestheaders_raises_async_first", "424"),
        ("requestheaders_raises_async_last", "424"),
        ("request_raises_sync_first", "424"),
        ("request_raises_sync_last", "424"),
        ("request_raises_async_first", "424"),
        ("request_raises_async_last", "424"),
        # nothing that could be refused in words
        ("connect_alone", "200"),
        ("h2_prior_knowledge_in_a_tunnel", "bytes"),  # its frames are read, and answered in frames
    ],
)
def test_the_client_is_told(case: str, seen: str, report: Callable[[str], Report]) -> None:
    """As shipped, what is not on the tape is refused with 424, and nobody is kept waiting."""
    told = [
        visit["seen"]
        for visit in report("whole")["visits"]
        if visit["case"] == case and visit["profile"] == "shipped" and not visit["broken"]
    ]
    assert told == [seen]


def test_a_guard_without_sockets_leaks(report: Callable[[str], Report]) -> None:
    """What no request is behind is held back where connections are opened, and nowhere else."""
    expected = {case.name for case in CASES if "sockets" in case.leaks}
    assert expected - _leaking(report("without sockets")) == set()


def test_a_guard_without_requests_leaks(report: Callable[[str], Report]) -> None:
    """A connection that is open already is held back where requests ask for one, and nowhere else."""
    expected = {case.name for case in CASES if "requests" in case.leaks}
    assert expected == _POOLED
    assert _leaking(report("without requests")) == _POOLED


def test_a_guard_without_its_resolver_leaks(report: Callable[[str], Report]) -> None:
    """mitmproxy's own resolver looks names up beside both."""
    assert _leaking(report("without resolver")) == {"dns_mode"}


def test_the_probes_see_what_leaves(report: Callable[[str], Report]) -> None:
    """Without any guard every case gets out, so that a zero means something."""
    without = report("without any")
    assert {case.name for case in CASES} - _leaking(without) == _NEVER
    assert without["kernel"] > without["opened"]
