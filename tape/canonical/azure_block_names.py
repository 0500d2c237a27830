"""The names of the blocks that an upload to Azure Blob Storage is put together of.

`PUT ?comp=block&blockid=NAME` sends a block, and `PUT ?comp=blocklist` says of which blocks a blob is made, in their order. SDKs draw
a name for each block at random. In the canonical form a name counts by being there: a block is known by its content. Which
blocks a list names is compared once they were sent (`matching/azure_block_lists.py`).

Source: "Put Block" and "Put Block List" of Azure's REST reference; azure-storage-blob 12.31, where a name is a uuid4.
"""

import re
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from ..exchange import Request

_SENT = re.compile(r"(?<=[?&]blockid=)[^&]+")
_LISTED = re.compile(rb"(?<=>)[^<>\s]+(?=</(?:Latest|Committed|Uncommitted)>)")
_MARK = "\x00block"


class BlockNames(NamedTuple):
    """The names of blocks in a request."""

    sent: str = ""
    """Of the block that it sends; empty where it sends none."""
    listed: tuple[str, ...] = ()
    """Of the blocks of which a blob is made, in their order."""


def find_block_names(request: Request) -> BlockNames | None:
    """Find the names of blocks in a request; None where it has none."""
    if request.method != "PUT" or "comp=block" not in request.target:
        return None
    if request.header(b"x-ms-version") is None:
        return None
    pairs = request.target.partition("?")[2].split("&")
    if "comp=block" in pairs:
        names = _SENT.findall(request.target)
        # A list has it as it is: in base64 with padding.
        return BlockNames(unquote(names[0])) if len(names) == 1 else None
    if "comp=blocklist" in pairs:
        listed = tuple([name.decode("latin-1") for name in _LISTED.findall(request.body)])
        return BlockNames(listed=listed) if listed else None
    return None


def without_block_names(request: Request) -> Request:
    """Give a request with marks in the place of the names of blocks; most have none, and are given back."""
    found = find_block_names(request)
    if found is None:
        return request
    if found.sent:
        return replace(request, target=_SENT.sub(_MARK, request.target))
    return replace(request, body=_LISTED.sub(_MARK.encode(), request.body))
