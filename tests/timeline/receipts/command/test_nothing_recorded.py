"""Why a recording has no request in it: by what was seen of its command."""

from typing import Any

import pytest

from playhead.tape.exchange import RedactedText
from playhead.tape.records.events import Event, EventKind
from playhead.tape.records.failed_attempt import Attempt, AttemptKind
from playhead.timeline.receipts.command.bypass_remedies import InUse
from playhead.timeline.receipts.command.command_end import CommandEnd
from playhead.timeline.receipts.command.nothing_recorded import (
    NOTHING,
    describe_end,
    explain_nothing,
)
from playhead.timeline.receipts.command.proxy_bypass import PastProxy
from playhead.timeline.receipts.warnings_and_hints import Advice

FAILED = "the command failed by itself, with "
CAPTURE: dict[str, Any] = {
    **{"off": "", "blind": "", "lost": False, "no_new_privileges": False},
    **{"ports": [80, 443], "unseen": {}, "rings": {}, "passed": ()},
}
LEFT = {"left": [{"host": "127.0.0.1", "port": 7850, "process": "python"}]}
EGRESS = {"target": "192.0.2.2:7850", "protocol": "tcp", "process": "python", "reason": "refused"}
REFUSED = {"target": "tcp://127.0.0.1:7850", "process": "python", "count": 1}
PORTS = "If that is HTTP, add `sandbox: {ports: [7850]}` to the configuration, and record in the same way"
SEEN = "python tried to connect past the proxy, to "
WAYS = ("--sandbox notify", "--capture", "--determinism seed")


@pytest.mark.parametrize(
    ("code", "in_use", "rows", "said", "advised", "not_advised"),
    [
        (0, InUse(), {}, NOTHING, WAYS, ()),
        (None, InUse(), {}, NOTHING, WAYS, ()),
        (0, InUse(has_preload=True), {}, NOTHING, WAYS[:2], WAYS[2:]),
        (2, InUse(), {}, f"{FAILED}2, before any request", ("mend that first",), WAYS),
        (127, InUse(), {}, f"{FAILED}127 (no such command), before", ("mend that first",), WAYS),
        (130, InUse(), {}, "was interrupted (130) before any request", ("Record again",), WAYS),
        (137, InUse(), {}, "was ended by SIGKILL (137) before", ("Record again",), WAYS),
        (0, InUse(capture=CAPTURE), {}, NOTHING, ("No connection of it was seen",), WAYS),
        (0, InUse(is_contained=True), {}, NOTHING, ("No connection of it was seen",), WAYS),
        (0, InUse(capture={**CAPTURE, "off": "EBUSY"}), {}, NOTHING, WAYS[1:], WAYS[:1]),
        (1, InUse(capture={**CAPTURE, **LEFT}), {}, f"{SEEN}127.0.0.1:7850", (PORTS,), WAYS),
        (1, InUse(is_contained=True), {"egress": EGRESS}, f"{SEEN}192.0.2.2:7850", (PORTS,), WAYS),
        (1, InUse(is_contained=True), {"refused": REFUSED}, f"{SEEN}127.0.0.1", (PORTS,), WAYS),
    ],
)
def test_nothing_is_explained_by_what_was_seen(
    code: int | None,
    in_use: InUse,
    rows: dict[str, Any],
    said: str,
    advised: tuple[str, ...],
    not_advised: tuple[str, ...],
) -> None:
    """A command that failed is told so, first; what is in use is never advised."""
    past = PastProxy(capture=None if in_use.capture is None else dict(in_use.capture))
    past.egress += [rows["egress"]] if "egress" in rows else []
    refused = [rows["refused"]] if "refused" in rows else []
    advice = Advice()
    found = past.close(in_use, playing=False)
    past.find_unrecorded(found, 0, advice, in_use, CommandEnd(code), refused)
    (line,), (warning,) = past.unrecorded, advice.warnings
    assert said in line
    assert warning.startswith(f"{line}. ")
    for text in advised:
        assert text in warning
    for text in not_advised:
        assert text not in warning


def test_a_client_that_came_and_left_made_no_nothing() -> None:
    """It did come to the proxy: that it distrusts the CA is all that is said."""
    attempt = Attempt(
        AttemptKind.FAILED_HANDSHAKE,
        "api.test",
        443,
        distrusted=True,
        detail=RedactedText("distrusts"),
    )
    past, advice, in_use = PastProxy(), Advice(), InUse(is_launched=True)
    past.take(Event(EventKind.NOTED, 1, {"attempt": attempt.to_event()}))
    found = past.close(in_use, playing=False)
    past.find_unrecorded(found, 0, advice, in_use, CommandEnd(1))
    (line,), (warning,) = past.unrecorded, advice.warnings
    assert line.startswith("failed handshake to api.test:443")
    assert NOTHING not in warning


def test_an_end_is_a_clause() -> None:
    """Shells give 126 and 127, and 128 and more for signals; other codes are the command's own."""
    assert describe_end(126).endswith("126 (it cannot be executed),")
    assert describe_end(143) == "the command was ended by SIGTERM (143)"
    assert describe_end(255) == "the command failed by itself, with 255,"


@pytest.mark.parametrize(
    ("code", "words", "advised", "not_advised"),
    [
        (0, "docker run --rm image", "--sandbox docker --image IMAGE -- COMMAND", "--capture"),
        (0, "/usr/bin/docker compose up", "--sandbox docker", "--capture"),
        (0, "sudo -E docker-compose up", "--sandbox docker", "--capture"),
        (0, "env A=1 podman run image", "--sandbox docker", "--capture"),
        (1, "docker run image", "record again. docker has a container started", "--capture"),
        (
            0,
            "ssh host python agent.py",
            "ssh has its command started on another machine",
            "--capture",
        ),
        (0, "kubectl exec pod -- python agent.py", "kubectl has its command", "--capture"),
        (0, "python docker.py", "--capture", "--sandbox docker"),
        (0, "python docker", "--capture", "--sandbox docker"),
    ],
)
def test_a_command_that_starts_its_agent_elsewhere_is_told_so(
    code: int, words: str, advised: str, not_advised: str
) -> None:
    """No sandbox around it, and no preload, has what another program starts."""
    told = ". ".join(explain_nothing(code, [], InUse(), words.split()))
    assert advised in told
    assert not_advised not in told
