"""Turn planted runs, which are plain data, into exchanges as a recorder would have written them, and into a store."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from playhead.config import Config
from playhead.store import RunInfo, Store
from playhead.tape.exchange import Chunk, Exchange, Lane, RequestClass, Response, Seq
from playhead.tape.matching.index import reclassify
from playhead.tests.adversary.planted.wire import encode, is_events

from .dialects import make_request
from .exchanges import fingerprint_of, make_exchange, write_run

_CLASSES = Config().classes


def make_exchanges(run: Sequence[dict[str, Any]]) -> list[Exchange]:
    """Give the exchanges of a planted run; what had arrived when follows from its times."""
    processes: dict[Any, int] = {}
    return [_make(one, run, processes) for one in run]


def _make(
    one: dict[str, Any], run: Sequence[dict[str, Any]], processes: dict[Any, int]
) -> Exchange:
    seq, begun, took_us = one["seq"], one["started_ms"], one["took_ms"] * 1000
    url, body = one["url"], encode(one["request"])
    asked = make_request(url, body, dict(one["request_headers"]), one["method"])
    process = one.get("process")
    number = processes.setdefault(process, len(processes) + 1) if process is not None else 0
    overlaps = [
        Seq(other["seq"])
        for other in run[: seq - 1]
        if other["started_ms"] + other["took_ms"] > begun
    ]
    made = make_exchange(
        seq,
        request=asked,
        response=_answer(one, run),
        started_ns=begun * 1_000_000,
        end_us=took_us,
        lane=Lane(number, tuple(overlaps)),
        fingerprint=fingerprint_of(f"{one['method']} {url}", body),
        kind=RequestClass.READ,
    )
    return reclassify(made, _CLASSES)


def _answer(one: dict[str, Any], run: Sequence[dict[str, Any]]) -> Response | None:
    if one.get("status") is None:
        return None
    given = one["response"]
    pieces = [encode([event]) for event in given] if is_events(given) else [encode(given)]
    took_us = one["took_ms"] * 1000
    chunks = []
    for number, piece in enumerate(pieces, 1):
        at_us = took_us * number // len(pieces)
        now_ms = one["started_ms"] + at_us / 1000
        after = sum(other["started_ms"] < now_ms for other in run)
        chunks.append(Chunk(at_us, len(piece), after if after > one["seq"] else 0))
    headers = tuple((k.encode(), v.encode()) for k, v in one["response_headers"].items())
    return Response(
        one["status"],
        b"",
        "HTTP/1.1",
        headers,
        b"".join(pieces),
        chunks[0].at_us if chunks else took_us,
        tuple(chunk for chunk in chunks if chunk.size),
    )


async def write_planted(
    folder: Path, runs: Iterable[tuple[str, Sequence[dict[str, Any]]]]
) -> list[RunInfo]:
    """Write planted runs into a store, each under its name."""
    with Store.open(folder) as store:
        return [await write_run(store, name, make_exchanges(run)) for name, run in runs]
