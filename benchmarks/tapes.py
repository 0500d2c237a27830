"""What playback plays: the same exchanges as a tape of Playhead and as a file of mitmproxy's flows.

A tape holds the requests 0 to n - 1 of a workload, once each, the last one recorded last. Tapes stay
in the working folder and are used again where it is kept.
"""

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import workloads
from proxies import Client, Tool, ToolError, mitmdump_replay, playhead, running
from workloads import HOST, WORKLOADS

RUN = "tape"
_SEED = "seed"
_BLOCK = 2500


class Recorded(NamedTuple):
    """One exchange of a tape, as it stood on the wire; POST, https, status 200, HTTP/1.1."""

    target: str
    request_headers: list[tuple[bytes, bytes]]
    request_body: bytes
    answer_headers: list[tuple[bytes, bytes]]
    answer_body: bytes


@dataclass(frozen=True, slots=True)
class Tape:
    """A tape on disk, in both forms."""

    workload: str
    count: int
    folder: Path

    @property
    def port(self) -> int:
        """Port of the provider that it was recorded from; nothing listens there any more."""
        port: int = json.loads((self.folder / "tape.json").read_text())["port"]
        return port

    @property
    def store(self) -> Path:
        """Playhead's store; the run is `RUN`."""
        return self.folder / "store"

    @property
    def flows(self) -> Path:
        """File of mitmproxy's flows."""
        return self.folder / "flows.mitm"

    def playhead(self, folder: Path) -> Tool:
        """Describe a Playhead that plays it."""
        return playhead("playback", folder, self.store, RUN)

    def mitmdump(self, name: str, folder: Path) -> Tool:
        """Describe a mitmdump that plays it; makes the file of flows if it is not there."""
        if not self.flows.exists():
            write_flows(self)
        return mitmdump_replay(name, folder, self.flows)


def exchanges(tape: Tape) -> Iterator[Recorded]:
    """Give the exchanges of a tape in order, without recording anything."""
    work = WORKLOADS[tape.workload]
    authority = f"{HOST}:{tape.port}"
    for number in range(tape.count):
        asked = workloads.body(work, number)
        said = workloads.answer_body(work, workloads.token(number))
        yield Recorded(
            work.target,
            workloads.request_headers(authority, len(asked)),
            asked,
            workloads.answer_headers(len(said)),
            said,
        )


def open_tape(
    folder: Path, workload: str, count: int, port: int, *, with_playhead: bool, fill: bool
) -> Tape:
    """Give a tape, made now unless the working folder has it.

    port: of a provider that runs; a tape that was made before keeps its own.
    fill: write Playhead's form into its store directly instead of recording through the proxy.
    Raises: ToolError.
    """
    tape = Tape(workload, count, folder / f"tape-{workload}-{count}")
    tape.folder.mkdir(exist_ok=True)
    described = tape.folder / "tape.json"
    if not described.exists():
        described.write_text(json.dumps({"port": port, "workload": workload, "count": count}))
    if with_playhead and not (tape.folder / "recorded").exists():
        if tape.port != port:
            described.write_text(json.dumps({"port": port, "workload": workload, "count": count}))
            tape.flows.unlink(missing_ok=True)
        shutil.rmtree(tape.store, ignore_errors=True)
        if fill:
            fill_playhead(folder, tape)
        else:
            record_playhead(folder, tape)
        (tape.folder / "recorded").touch()
    return tape


def record_playhead(folder: Path, tape: Tape, run: str = RUN) -> None:
    """Make Playhead's form of a tape through the proxy itself: about a second for 1,000 exchanges.

    Raises: ToolError.
    """
    ends = [*range(0, tape.count - 1, _BLOCK), tape.count - 1]
    blocks = [list(range(at, end)) for at, end in itertools.pairwise(ends)]
    tool = playhead("record", folder, tape.store, run)
    with running([tool], folder) as tools:
        client = Client(
            do="load",
            proxy=tools[tool.name].port,
            upstream=tape.port,
            connections=8,
            workload=tape.workload,
            blocks=[*blocks, [tape.count - 1]],
        )
        try:
            for _ in range(len(blocks) + 1):
                client.go()
        except ToolError as error:
            raise ToolError(f"recording {tape.folder.name}: {error}") from error
        finally:
            client.close()


def fill_playhead(folder: Path, tape: Tape) -> None:
    """Make Playhead's form of a tape with its store: one exchange through the proxy, the rest copied.

    Raises: ToolError.
    """
    import fill

    record_playhead(folder, replace(tape, count=1), _SEED)
    bodies = ((one.request_body, one.answer_body) for one in exchanges(tape))
    try:
        fill.extend(tape.store, _SEED, RUN, bodies)
    except ValueError as error:
        raise ToolError(f"filling {tape.folder.name}: {error}") from error


def write_flows(tape: Tape) -> None:
    """Make mitmproxy's form of a tape, with mitmproxy's own writer."""
    from mitmproxy import connection, http, io

    part = tape.flows.with_suffix(".part")
    with part.open("wb") as out:
        writer = io.FlowWriter(out)
        for at, one in enumerate(exchanges(tape)):
            flow = http.HTTPFlow(
                connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2)),
                connection.Server(address=(HOST, tape.port)),
            )
            flow.request = http.Request(
                host=HOST,
                port=tape.port,
                method=b"POST",
                scheme=b"https",
                authority=b"",
                path=one.target.encode(),
                http_version=b"HTTP/1.1",
                headers=http.Headers(one.request_headers),
                content=one.request_body,
                trailers=None,
                timestamp_start=float(at),
                timestamp_end=float(at),
            )
            flow.response = http.Response(
                http_version=b"HTTP/1.1",
                status_code=200,
                reason=b"OK",
                headers=http.Headers(one.answer_headers),
                content=one.answer_body,
                trailers=None,
                timestamp_start=float(at),
                timestamp_end=float(at),
            )
            writer.add(flow)
    part.rename(tape.flows)
