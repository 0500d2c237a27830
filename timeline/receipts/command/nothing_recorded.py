"""Say why a recording has no request in it, and what to do about that.

A command that failed has most likely not come to its first request; of one that went well, its client reads no proxy variables. Which
of both it was is known where a connection of it was seen.
"""

import contextlib
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ....config.parse_values import is_loopback
from ....tape.exit_codes import ExitCode
from .bypass_remedies import InUse, bypass_remedy

NOTHING = "nothing was recorded: the command made no request through the proxy"
_DOCTOR = "`playhead doctor` tries the clients of this machine"
_MEND = "Its own output says why; mend that first, then record again"
_SHOWN = 5
_PORTS = {"http": 80, "https": 443}
SIGNALS = 128
"""Codes above are signals, as a shell gives them."""
_CONTAINERS = ("docker", "podman", "nerdctl", "docker-compose", "podman-compose")
_ELSEWHERE = {
    "ssh": "on another machine",
    "kubectl": "in a cluster",
    "systemctl": "as a service",
    "systemd-run": "as a service",
}
"""Programs that have others started, and where."""
_WRAPPERS = ("sudo", "env", "nice", "time", "timeout", "nohup")
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


def find_refused_ports(
    refused: Iterable[Mapping[str, Any]], left: Iterable[Mapping[str, Any]]
) -> set[int]:
    """Find the ports of loopback that a sandbox refused although the tape has answers of them, which were never asked for.

    refused: rows of the sandbox.
    left: of the tape.
    """
    rows = (row for row in refused if row["target"].startswith("tcp:"))
    tried = {found.port for row in rows for found in _read(row)}
    recorded = set[int]()
    for row in left:
        with contextlib.suppress(ValueError):
            url = urlsplit(str(row["url"]))
            if url.hostname and is_loopback(url.hostname):
                recorded.add(url.port or _PORTS.get(url.scheme, 0))
    return tried & recorded


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


def explain_nothing(
    ended: int | None, tried: list[Tried], in_use: InUse, command: Sequence[str] = ()
) -> tuple[str, str]:
    """Give why nothing was recorded, and what to do.

    ended: the exit code of the command.
    """
    elsewhere = _explain_elsewhere(command)
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
        is_signal = ended > SIGNALS
        mend = f"{_MEND}. {elsewhere}".rstrip(". ")
        return said, "Record again" if is_signal else mend
    if elsewhere:
        return NOTHING, elsewhere
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


def _explain_elsewhere(command: Sequence[str]) -> str:
    """Say that a command has its agent started elsewhere, which no sandbox of its own reaches; empty where it does not."""
    words = [word.rpartition("/")[2] for word in command]
    while words and (words[0] in _WRAPPERS or words[0][:1] == "-" or "=" in words[0]):
        del words[0]
    name = words[0] if words else ""
    if name in _CONTAINERS:
        return (
            f"{name} has a container started outside of the command, which got neither the proxy nor its CA:"
            " record what the container runs, with --sandbox docker --image IMAGE -- COMMAND; of compose see docs/docker.md"
        )
    if name in _ELSEWHERE:
        return (
            f"{name} has its command started {_ELSEWHERE[name]}, which got neither the proxy nor its CA:"
            " record there, or run `playhead serve`, and there with what `playhead env` prints"
        )
    return ""


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
    if code > SIGNALS and code - SIGNALS in {one.value for one in signal.Signals}:
        return f"the command was ended by {signal.Signals(code - SIGNALS).name} ({code})"
    return f"the command failed by itself, with {code}{_OF_SHELLS.get(code, '')},"
