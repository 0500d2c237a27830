"""Say why a recording has no request in it, and what to do about that.

A command that failed has most likely not come to its first request; of one that went well, its client reads no proxy variables. Which
of both it was is known where a connection of it was seen.
"""

import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ....tape.exit_codes import ExitCode
from .bypass_remedies import InUse, bypass_remedy

NOTHING = "nothing was recorded: the command made no request through the proxy"
_DOCTOR = "`playhead doctor` tries the clients of this machine"
_MEND = "Its own output says why; mend that first, then record again"
_SHOWN = 5
_SIGNALS = 128
"""Codes above are signals, as a shell gives them."""
_OF_SHELLS = {126: " (it cannot be executed)", 127: " (no such command)"}


class Tried(NamedTuple):
    """A connection of TCP that a command tried past the proxy."""

    process: str
    place: str
    port: int


def find_tried(
    in_use: InUse, egress: Iterable[Mapping[str, Any]], refused: Iterable[Mapping[str, Any]]
) -> list[Tried]:
    """List where a command tried to connect.

    egress: rows of `Receipt.egress`.
    refused: those of the sandbox, of loopback.
    """
    rows = [
        Tried(row["process"], _join(row["host"], row["port"]), row["port"])
        for row in (in_use.capture or {}).get("left", ())
    ]
    rows += [found for row in egress if row.get("protocol") == "tcp" for found in _read(row)]
    rows += [found for row in refused if row["target"].startswith("tcp:") for found in _read(row)]
    return list(dict.fromkeys(rows))


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _read(row: Mapping[str, Any]) -> Iterator[Tried]:
    target = row["target"]
    try:
        port = urlsplit(target if "://" in target else f"tcp://{target}").port
    except ValueError:
        return
    if port:
        yield Tried(row.get("process", ""), target.rpartition("//")[2], port)


def explain_nothing(ended: int | None, tried: list[Tried], in_use: InUse) -> tuple[str, str]:
    """Give why nothing was recorded, and what to do.

    ended: the command's exit code.
    """
    if tried:
        names = list(dict.fromkeys(one.process for one in tried))
        places = list(dict.fromkeys(one.place for one in tried))
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        who = ", ".join(filter(None, names)) or "the command"
        said = f"nothing was recorded: {who} tried to connect past the proxy, to {', '.join(places[:_SHOWN])}{more}"
        remedy = bypass_remedy(names, in_use, [one.port for one in tried])
        return said, remedy[0].upper() + remedy[1:]
    if ended:
        said = f"nothing was recorded: {describe_end(ended)} before any request through the proxy"
        is_signal = ended > _SIGNALS
        return said, "Record again" if is_signal else _MEND
    if in_use.is_contained or (in_use.capture is not None and not _is_off(in_use.capture)):
        return (
            NOTHING,
            f"No connection of it was seen either: it asked nothing, or asked in another way (a Unix socket, UDP). {_DOCTOR}",
        )
    remedy = bypass_remedy([], in_use)
    return (
        NOTHING,
        f"If it does make requests, its client reads no proxy variables: {remedy}. {_DOCTOR}",
    )


def _is_off(capture: Mapping[str, Any]) -> bool:
    """Say whether a capture saw nothing of the command."""
    return bool(
        capture["off"]
        or capture["blind"]
        or capture["lost"]
        or capture["unseen"]
        or capture["rings"]
    )


def describe_end(code: int) -> str:
    """Say how a command failed, as a clause."""
    if code == ExitCode.INTERRUPTED:
        return f"the command was interrupted ({code})"
    if code > _SIGNALS and code - _SIGNALS in {one.value for one in signal.Signals}:
        return f"the command was ended by {signal.Signals(code - _SIGNALS).name} ({code})"
    return f"the command failed by itself, with {code}{_OF_SHELLS.get(code, '')},"
