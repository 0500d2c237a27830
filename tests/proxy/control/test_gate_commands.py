"""What `playhead gates` prints of a held request."""

from playhead.proxy.control.gate_commands import render


def test_why_a_request_is_held_is_wrapped_and_never_cut() -> None:
    """What decides may be at its end."""
    reason = " ".join(f"word{number}" for number in range(200)) + " \x1b[2J" + " LAST"
    row = {
        "id": "run:3",
        "method": "POST",
        "url": "http://a.test/v1/refunds",
        "reason": reason,
        "deadline_ns": 10**10,
        "now_ns": 0,
        "body": "",
        "body_bytes": 0,
        "whole": True,
        "digest": "d",
    }
    lines = render([row]).splitlines()
    end = lines.index("  refused in 10 s unless it is approved")
    assert " ".join(line.strip() for line in lines[1:end]) == reason.replace("\x1b", "\\x1b")
    assert max(map(len, lines)) <= 160
    assert all(line.startswith("    ") for line in lines[2:end])
