"""`playhead gates`: pending approvals of every process of a store, and decisions on them."""

import textwrap
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ...config import Config
from ...tape.shell_words import shell_word
from ...timeline.receipts.safe_terminal_text import WIDTH, plain, plain_lines
from ..errors import NotAnswered
from ..operations.open_store import open_store
from .address import Address, find_addresses, read_token, token_path
from .ask_processes import (
    Held,
    command_holder,
    find_awake,
    find_gates,
    list_held,
    refuse_silent,
)
from .client import ask

_BODY_LINES = 12
_REASON = 2000
"""Characters of why a request is held: whoever decides needs all of it."""


def find_held(config: Config) -> Held:
    """List what is held in all processes that write this store.

    Raises: StoreError, where there is no store; EngineError, where the token cannot be read.
    """
    _addresses(config)
    return list_held(config)


def find_pages(config: Config) -> str:
    """Give a link to the page of gates, which is valid once: one page is for all processes of a store.

    Raises: StoreError, where there is no store; EngineError, where the token cannot be read; NotAnswered, where none answers.
    """
    refused: NotAnswered | None = None
    awake, silent = find_awake(config, _addresses(config))
    for address in awake:
        try:
            link = ask(config, address, "POST", "/v1/links", {})
        except NotAnswered as error:
            refused = error
        else:
            return f"{address.url}{link['path']}"
    if refused is not None:
        raise refused
    if silent:
        raise refuse_silent(silent)
    return "no proxy is running on this store"


def decide(
    config: Config, action: str, name: str, digest: str | None, reason: str
) -> dict[str, Any]:
    """Approve or deny a held request.

    digest: of the request that was looked at; None approves what is held now under that name.
    Raises: StoreError; NotAnswered, also where nothing is held under that name, with why.
    """
    processes = find_awake(config, _addresses(config))
    shown = find_gates(config, processes.awake, [name]).get(name)
    body = {"reason": reason, "via": "command"}
    looked_at = digest or (shown["digest"] if shown is not None else "")
    if looked_at:
        body["digest"] = looked_at

    def knows(address: Address, error: NotAnswered) -> bool:
        is_holder = shown is not None and shown["pid"] == address.pid
        return is_holder or "held no more" in str(error)

    path = f"/v1/gates/{quote(name, safe='')}/{action}"
    decided: dict[str, Any] | None = command_holder(config, processes, path, body, knows)
    if decided is None:
        raise NotAnswered(
            f"no process of {config.store} holds anything", "`playhead runs` lists the open runs"
        )
    return decided


def describe_silent(silent: Iterable[str]) -> list[str]:
    """Say which processes did not answer, and what that means for what they hold."""
    return [
        f"{why}: what it holds is not listed, and is refused at its deadline unless somebody rules"
        for why in silent
    ]


def render(held: list[dict[str, Any]], more: int = 0) -> str:
    """List what is held, for a terminal; `more` of it is not in the list."""
    if not held:
        return "nothing is held at a gate"
    document = [*map(_render_one, held), *([f"… and {more} more"] if more else [])]
    return "\n\n".join(document)


def render_decided(decided: dict[str, Any]) -> str:
    """Say what was ruled."""
    return plain(
        f"{decided['id']}: {decided['ruling']} by {decided['by']}: {decided['method']} {decided['url']}"
    )


def _addresses(config: Config) -> list[Address]:
    """Give where the processes of a store can be asked; a mistyped store has none, and is said to be none."""
    with open_store(config, readonly=True):
        addresses = find_addresses(config.store)
    if addresses:
        read_token(token_path(config))
    return addresses


def _render_one(row: dict[str, Any]) -> str:
    left_s = max(0.0, (row["deadline_ns"] - row["now_ns"]) / 1e9)
    name = plain(row["id"], 80)
    lines = [
        f"{name}  {plain(row['method'] + ' ' + row['url'], 120)}",
        *textwrap.wrap(
            plain(row["reason"], _REASON), WIDTH, initial_indent="  ", subsequent_indent="    "
        ),
        f"  refused in {left_s:.0f} s unless it is approved",
    ]
    body = plain_lines(row["body"]).splitlines()
    lines += [f"  | {line}" for line in body[:_BODY_LINES]]
    if len(body) > _BODY_LINES or not row["whole"]:
        lines.append(f"  | … {row['body_bytes']} bytes in all")
    lines.append(
        f"  playhead gates approve {shell_word(name)} --digest {shell_word(row['digest'])}"
    )
    lines.append(f"  playhead gates deny {shell_word(name)}")
    return "\n".join(lines)
