"""Reads that a client sends from a thread of its own: whether and how often is chance.

1. Nothing depends on one, and nobody wrote it. So one that is on a tape and is not asked for in a playback is reported, and does
   not count as unused.
2. How often a program looks whether somebody listens on loopback, where nobody ever did, is chance, too.
3. One that is sent late, perhaps too late for the end of its process, is looked for at the end of a tape alone; others anywhere.

Source: google-cloud-storage 3, which looks for the location of a bucket; azure-cosmos 4, which refreshes what it knows of
its account; Codex 0.169, which asks for the list of models once or twice as it starts (recordings codex r0 and r1 of 2026-11-24);
Claude Code 2.1.332, which asks for the limits of its policy a second time where its start takes long (recordings of 2026-11-27);
MCP's Streamable HTTP, whose client opens a stream to listen on beside its first calls, which a server without one refuses by 405
(2025-11-25, "Listening for Messages from the Server"; mcp 2.3).
"""

import re
from typing import NamedTuple

from ...config.parse_values import is_loopback
from ..exchange import Exchange, Phase, Request


class BackgroundRead(NamedTuple):
    """One such read; a GET."""

    sdk: str
    host: str
    """Its end."""
    path: re.Pattern[str]
    agent: bytes
    """What the `User-Agent` of the SDK contains."""
    anywhere: bool = False
    """Whether it is sent at any time, and not at the end alone."""
    refused_by: int = 0
    """Status of its answer; 0 for any."""


BACKGROUND_READS = (
    BackgroundRead(
        "google-cloud-storage",
        "storage.googleapis.com",
        re.compile(r"/storage/v1/b/[^/]+"),
        b"gcloud-python/",
    ),
    BackgroundRead(
        "azure-cosmos", ".documents.azure.com", re.compile(r"/?"), b"azsdk-python-cosmos"
    ),
    BackgroundRead(
        "Codex", "chatgpt.com", re.compile(r"/backend-api/codex/models"), b"codex_", anywhere=True
    ),
    BackgroundRead(
        "Claude Code",
        "api.anthropic.com",
        re.compile(r"/api/claude_code/policy_limits"),
        b"claude-c",  # claude-cli and claude-code
        anywhere=True,
    ),
)

_LISTENING = BackgroundRead("MCP", "", re.compile(""), b"", anywhere=True, refused_by=405)


POLL = BackgroundRead("a poll of loopback", "", re.compile(""), b"", anywhere=True)


def may_poll(request: Request) -> bool:
    """Say whether a request may be one that looks whether somebody listens on loopback."""
    return request.method in ("GET", "HEAD") and is_loopback(request.host)


def is_poll(exchange: Exchange) -> bool:
    """Say whether it was one, and nobody listened."""
    fault = exchange.fault
    return may_poll(exchange.request) and fault is not None and fault.phase is Phase.CONNECT


def find_background_read(request: Request) -> BackgroundRead | None:
    """Find the SDK that asks so from a thread; None where none does."""
    if request.method != "GET":
        return None
    if _listens(request):
        return _LISTENING
    agent = request.header(b"user-agent") or b""
    for one in BACKGROUND_READS:
        there = request.host.lower().endswith(one.host) and one.path.fullmatch(request.path)
        if there and one.agent in agent:
            return one
    return None


def _listens(request: Request) -> bool:
    """Say whether a GET opens a stream of MCP on which a client listens; with `last-event-id` it takes one up again."""
    accepted = request.header(b"accept") or b""
    names = {name.lower() for name, _ in request.headers}
    return (
        b"text/event-stream" in accepted
        and b"last-event-id" not in names
        and b"mcp-protocol-version" in names
    )
