"""In playback nothing leaves, whatever a client does and whatever is broken above the guard.

Each run of `leak_runner.py` has a network of its own. One has the guard whole; in the others a part of
it is taken out, which has to show: a guard that nobody misses guards nothing.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from .leak_runner import CASES, LAYERS, MOST_S, NEVER, PROFILES, PROXIED, Case

Report = dict[str, Any]

pytestmark = pytest.mark.timeout(2 * MOST_S)
FULL = bool(os.environ.get("PLAYHEAD_FULL"))
FEATURED = list(PROFILES) if FULL else ["shipped", "loose-eager"]
RUNS: dict[str, tuple[list[str], list[str], bool]] = {
    "whole": ([], list(PROFILES), False),
    PROXIED: ([], ["loose-eager"], False),
    "featured": ([], FEATURED, True),
    "without sockets": (["sockets"], ["eager", "loose", "ignored"], False),
    "without requests": (["requests"], ["shipped"], False),
    "without resolver": (["resolver"], ["shipped"], False),
    "without any": (list(LAYERS), ["eager", "loose"], FULL),
}
"""What is taken out of the guard, the profiles to try, and whether every feature is on.

The whole guard is tried in all profiles, with every feature on in a few but for the bars.
"""

_POOLED = {"pooled_connection", "pooled_tls_connection"}
_ELSEWHERE = {"live_model"}
"""Asks a host that belongs to no case."""
_SILENT = {
    f"fault_{kind}_{at}"
    for kind in ("timeout", "late")
    for at in ("over_the_tape", "at_a_live_host")
}
"""Are played as silence, without asking for a connection."""


@pytest.fixture(scope="session")
def report() -> Callable[[str], Report]:
    """Give what was seen in a run by its name; all of them are run at once."""
    runner = [sys.executable, "-m", "playhead.tests.proxy.engine.leak_runner", json.dumps(RUNS)]
    done = subprocess.run(runner, capture_output=True, timeout=MOST_S + 10, check=False)
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


PLAIN = [case.name for case in CASES if not case.featured]


def _visits(report: Report, case: str) -> list[dict[str, Any]]:
    found = [visit for visit in report["visits"] if visit["case"] == case]
    assert {visit["broken"] for visit in found} == {False, True}
    return found


@pytest.mark.parametrize("case", PLAIN)
def test_nothing_leaves(case: str, report: Callable[[str], Report]) -> None:
    """No connection, no byte, no datagram, no look-up: in every profile, with the addons broken too."""
    assert [visit for visit in _visits(report("whole"), case) if visit["left"]] == []


def test_nothing_leaves_to_anywhere_else(report: Callable[[str], Report]) -> None:
    """Nothing is looked up or reached that nobody asked for; the kernel has counted the same."""
    whole = report("whole")
    assert {visit["profile"] for visit in whole["visits"]} == set(PROFILES)
    assert whole["stray"] == {}
    assert whole["kernel"] == whole["opened"]


def test_nothing_leaves_by_a_proxy_of_the_network(report: Callable[[str], Report]) -> None:
    """Nothing connects to it, and nothing goes past it."""
    seen = report(PROXIED)
    assert [visit for visit in seen["visits"] if visit["left"]] == []
    assert seen["stray"] == {}
    assert seen["kernel"] == seen["opened"]


@pytest.mark.parametrize("case", [case.name for case in CASES if not case.asks and not case.named])
def test_nothing_leaves_with_every_feature_on(case: str, report: Callable[[str], Report]) -> None:
    """Stubs, gates, limits, faults, a sink, drift and live rules for others change nothing of it."""
    assert [visit for visit in _visits(report("featured"), case) if visit["left"]] == []


@pytest.mark.parametrize("case", [case for case in CASES if case.named], ids=lambda case: case.name)
def test_a_live_rule_lets_out_what_it_names(case: Case, report: Callable[[str], Report]) -> None:
    """That many requests and no more; a fault in its place asks nobody."""
    for visit in _visits(report("featured"), case.name):
        left = visit["left"]
        asked = {kind: count for kind, count in left.items() if kind.startswith("asked ")}
        expected = [Counter(f"asked {what}" for what in case.asks)]
        if visit["broken"]:
            expected.append(Counter(f"asked {what}" for what in case.named))
        if PROFILES[visit["profile"]]["connection_strategy"] == "eager":
            expected.append(Counter())  # its connection was asked for before its request
        assert asked in expected, visit
        assert left.get("connections", 0) <= len(case.named if visit["broken"] else case.asks), (
            visit
        )
        assert "datagrams" not in left, visit


def test_the_sink_is_the_one_way_out_of_our_own(report: Callable[[str], Report]) -> None:
    """Rows go to its URL alone, one request each; the kernel has counted no connection besides."""
    seen = report("featured")
    assert {visit["profile"] for visit in seen["visits"]} == set(FEATURED)
    assert seen["stray"] == {}
    asked = {kind: count for kind, count in seen["sink"].items() if kind.startswith("asked ")}
    assert seen["told"] > 0
    assert asked == {"asked POST /effects": seen["told"]}
    assert seen["kernel"] == seen["opened"] + seen["connections"]
    models = sum(visit["case"] == "live_model" for visit in seen["visits"])
    asked = {kind: count for kind, count in seen["model"].items() if kind.startswith("asked ")}
    assert asked == {"asked POST /v1/chat/completions": models}


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
    assert _told(report("whole"), case) == [seen]


@pytest.mark.parametrize(
    ("case", "seen"),
    [
        # answered by a feature
        ("effect_on_tape", "200"),
        ("effect_with_an_answer", "201"),
        ("effect_made_after_the_tape", "200"),
        ("read_that_is_polled", "200"),
        ("model_that_drifted", "200"),
        ("secret_and_volatile", "200"),
        # faults over the tape, and in the place of a live host
        ("fault_delay_over_the_tape", "200"),
        ("fault_status_over_the_tape", "503"),
        ("fault_reset_over_the_tape", "closed"),
        ("fault_timeout_over_the_tape", "silent"),
        ("fault_late_over_the_tape", "silent"),
        ("fault_status_at_a_live_host", "503"),
        ("fault_reset_at_a_live_host", "closed"),
        # let out
        ("live", "200"),
        ("live_over_tls", "200"),
        ("fault_delay_at_a_live_host", "200"),
        # refused
        ("effect_that_is_refused", "424"),
        ("live_model", "424"),  # its second request is no model call
        ("live_of_an_unknown_tape", "424"),
        ("live_held_and_not_approved", "424"),
        ("live_against_its_contract", "424"),
        ("live_within_its_contract", "200"),
        ("live_until_a_limit_is_reached", "424"),
        ("another_path_of_a_live_host", "424"),
        ("another_path_of_a_live_host_over_tls", "424"),
        ("another_path_after_a_live_one", "424"),
        ("another_method_at_a_live_host", "424"),
        ("live_path_of_another_host", "424"),
        ("live_host_in_the_host_field", "424"),
    ],
)
def test_the_client_is_told_by_each_feature(
    case: str, seen: str, report: Callable[[str], Report]
) -> None:
    """Each does its work in that run: a zero is not for want of trying."""
    assert _told(report("featured"), case) == [seen]


def _told(report: Report, case: str) -> list[str]:
    return [
        visit["seen"]
        for visit in _visits(report, case)
        if visit["profile"] == "shipped" and not visit["broken"]
    ]


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
    tried = {visit["case"] for visit in without["visits"]}
    assert tried >= set(PLAIN)
    assert tried - _leaking(without) - _ELSEWHERE - _SILENT == NEVER
    assert without["kernel"] > without["opened"]
