"""Tests for the words of telemetry."""

import pytest

from playhead.timeline.learning.telemetry_words import is_told, takes_reports

DEEDS = ("reboot", "disarm", "lock", "admit", "hire", "evict", "sign", "redeem", "reserve")


@pytest.mark.parametrize("path", ["/c/{}", "/{}", "/metrics/{}", "/{}/logs", "/v1/traces/{}Now"])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_path_with_any_other_word_takes_no_reports(path: str, deed: str) -> None:
    """No list of deeds is whole."""
    assert not takes_reports(path.format(deed))


@pytest.mark.parametrize(
    "path", ["", "/", "/v1/events", "/v2/collect", "/batch", "/logs", "/v1/metrics%2Freboot"]
)
def test_a_path_that_names_no_telemetry_takes_no_reports(path: str) -> None:
    """Orders come in batches of events, too."""
    assert not takes_reports(path)


@pytest.mark.parametrize(
    "path", ["/v1/traces", "/api/v2/metrics", "/event_logging/batch", "/telemetry/events"]
)
def test_a_path_that_names_telemetry_alone_takes_reports(path: str) -> None:
    """As programs report."""
    assert takes_reports(path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((one, False) for one in ("pump", "litres", "door", "k", "on", "summary", "to", "amount")),
        *((one, False) for one in ("id", "target_id", "orderId", "value", "дверь", "")),
        *((one, True) for one in ("event", "eventId", "session_id", "timestamp", "duration_ms")),
        *((one, True) for one in ("properties", "sdk_version", "severity")),
    ],
)
def test_a_member_is_one_of_reports_by_its_words(name: str, told: bool) -> None:
    """A bare `id` may be that of anything."""
    assert is_told(name) is told
