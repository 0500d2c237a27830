"""Ask all processes of a store the same at once: one that hangs keeps nobody waiting for what the others say.

Before something is changed, processes are asked whether they answer: what is sent to one that hangs would be done once it goes on, long
after somebody was told that it was not.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from ... import PlayheadError
from ...config import Config
from ..errors import NotAnswered
from .address import Address, find_addresses
from .client import ask

SOON_S = 1.0
"""How long processes have to answer, all together."""


class Held(NamedTuple):
    """What the processes of a store hold."""

    gates: list[dict[str, Any]]
    """By gates, oldest first, as the control API shows it, with the `pid` that holds it; of one process the first 500."""
    held: int
    """How many gates hold."""
    breaks: list[dict[str, Any]]
    """At breakpoints, likewise."""
    requests: dict[str, int]
    """How many requests of each open run have arrived."""
    silent: dict[int, str]
    """Processes that did not answer, each with what is wrong."""


def ask_all[T](
    addresses: Sequence[Address], question: Callable[[Address], T], limit_s: float = SOON_S
) -> list[tuple[Address, T | PlayheadError]]:
    """Ask several processes at once; give what each of them says, or why it says nothing."""
    said: dict[int, T | PlayheadError] = {}

    def put(address: Address) -> None:
        try:
            said[address.pid] = question(address)
        except PlayheadError as error:
            said[address.pid] = error

    # Daemons: nobody waits for one that is not answered.
    asking = [threading.Thread(target=put, args=(one,), daemon=True) for one in addresses]
    for thread in asking:
        thread.start()
    until = time.monotonic() + limit_s
    for thread in asking:
        thread.join(max(0.0, until - time.monotonic()))
    return [(one, said.get(one.pid) or _late(one, limit_s)) for one in addresses]


def _late(address: Address, limit_s: float) -> NotAnswered:
    return NotAnswered(
        f"process {address.pid} did not answer within {limit_s:.0f} s",
        "is it stopped, or busy? ask again",
    )


def list_held(config: Config) -> Held:
    """List what all processes of a store hold, and those that do not answer."""

    def look(address: Address) -> list[dict[str, Any]]:
        return [
            ask(config, address, "GET", f"/v1/{what}", patience_s=SOON_S)
            for what in ("gates", "breaks", "runs")
        ]

    gates, breaks, silent = list[dict[str, Any]](), list[dict[str, Any]](), dict[int, str]()
    held, requests = 0, dict[str, int]()
    for address, told in ask_all(find_addresses(config.store), look):
        if isinstance(told, PlayheadError):
            silent[address.pid] = str(told)
            continue
        at_gates, at_breaks, runs = told
        gates += [{**row, "pid": address.pid} for row in at_gates["gates"]]
        held += at_gates["held"]
        breaks += [{**row, "pid": address.pid} for row in at_breaks["breaks"]]
        requests |= {row["id"]: row["requests"] for row in runs["runs"]}
    for rows in (gates, breaks):
        rows.sort(key=lambda row: int(row["since_ns"]))
    return Held(gates, held, breaks, requests, silent)


def find_gates(
    config: Config, addresses: Sequence[Address], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Give what gates hold by some names, with as much of each body as is ever shown, and its `pid`; nothing of what nobody holds."""

    def look(address: Address) -> dict[str, dict[str, Any]]:
        found = {}
        for name in names:
            with contextlib.suppress(NotAnswered):  # another process holds it
                row = ask(
                    config, address, "GET", f"/v1/gates/{quote(name, safe='')}", patience_s=SOON_S
                )
                found[name] = {**row, "pid": address.pid}
        return found

    made: dict[str, dict[str, Any]] = {}
    for _, told in ask_all(addresses, look):
        if not isinstance(told, PlayheadError):
            made |= told
    return made


class Awake(NamedTuple):
    """The processes of a store, by whether they answer now."""

    awake: list[Address]
    silent: list[PlayheadError]
    """What is wrong with the others."""


def find_awake(config: Config, addresses: Sequence[Address]) -> Awake:
    """Find out which processes answer now."""
    told = ask_all(addresses, lambda one: ask(config, one, "GET", "/healthz", patience_s=SOON_S))
    awake = [address for address, said in told if not isinstance(said, PlayheadError)]
    return Awake(awake, [said for _, said in told if isinstance(said, PlayheadError)])


def command_holder(
    config: Config,
    processes: Awake,
    path: str,
    body: Mapping[str, Any],
    knows: Callable[[Address, NotAnswered], bool],
) -> Any:
    """Have the process that holds a request do something with it; give what it says, None where there is no process.

    Which one that is shows by asking: each that answers is asked, until one does it.
    knows: says of a refusal whether it is of the process that holds the request, or did.
    Raises: NotAnswered: by whoever knows the request, of a silent process that may hold it, else by whoever was asked first.
    """
    refused: NotAnswered | None = None
    is_known = False
    for address in processes.awake:
        try:
            return ask(config, address, "POST", path, body)
        except NotAnswered as error:
            # Whoever decided on it last knows best why it is held no more.
            if refused is None or knows(address, error):
                refused, is_known = error, knows(address, error)
    if processes.silent and not is_known:
        raise refuse_silent(processes.silent)
    if refused is not None:
        raise refused
    return None


def refuse_silent(silent: Sequence[PlayheadError]) -> NotAnswered:
    """Say that processes were not asked to do anything."""
    why = "; ".join(map(str, silent))
    return NotAnswered(f"nothing was done: {why}", "is it stopped, or busy? ask again")
