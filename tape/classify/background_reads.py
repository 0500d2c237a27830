"""Reads that an SDK sends from a thread of its own, perhaps too late for the end of its process.

Whether one is sent is chance: nothing depends on it, and nobody wrote it. So one that is at the end of a tape and is not asked
for in a playback is reported, and does not count as unused.
Source: google-cloud-storage 3, which looks for the location of a bucket; azure-cosmos 4, which refreshes what it knows of
its account.
"""

import re
from typing import NamedTuple

from ..exchange import Request


class BackgroundRead(NamedTuple):
    """One such read; a GET."""

    sdk: str
    host: str
    """Its end."""
    path: re.Pattern[str]
    agent: bytes
    """What the `User-Agent` of the SDK contains."""


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
)


def find_background_read(request: Request) -> BackgroundRead | None:
    """Find the SDK that asks so from a thread; None where none does."""
    if request.method != "GET":
        return None
    agent = request.header(b"user-agent") or b""
    for one in BACKGROUND_READS:
        there = request.host.lower().endswith(one.host) and one.path.fullmatch(request.path)
        if there and one.agent in agent:
            return one
    return None
