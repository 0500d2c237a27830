"""Measure Playhead beside mitmdump on loopback and hold it against its bars.

    uv run python benchmarks/run.py [PART...] [--rounds N] [--quick] [--markdown] ...

Parts, all but the last where none is named: record, playback, start, ttfb, agent, chunks, pace, nagle, bodies, beside, match, nearest,
redact, encryption, store, archive, carry, delete, soak. `patches` is measured only where it is named.

What is measured and how to read it: `benchmarks/README.md`. Ends with 1 when a bar was missed.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import archiving
import beside
import bodies
import carrying
import chunks
import deleting
import encryption
import matching
import measure
import nagle
import nearest
import pace
import patches
import redact
import soak
import storing
from measure import Plan
from proxies import ToolError, playhead, running, upstream
from report import Bar, Section, render, render_bars, render_joint

PARTS: dict[str, Callable[[Plan], list[Section]]] = {
    "record": measure.record,
    "playback": measure.playback,
    "start": measure.start_up,
    "ttfb": measure.first_byte,
    "agent": measure.agent,
    "chunks": chunks.chunks,
    "pace": pace.pace,
    "nagle": nagle.nagle,
    "bodies": bodies.bodies,
    "beside": beside.beside,
    "match": matching.matching,
    "nearest": nearest.nearest,
    "redact": redact.redact,
    "encryption": encryption.encryption,
    "store": storing.storing,
    "archive": archiving.archiving,
    "carry": carrying.carrying,
    "delete": deleting.deleting,
    "soak": soak.soak,
    "patches": patches.patches,
}
_NOT_IN_ALL = ("patches",)
_ROUNDS = {
    "record": 5,
    "playback": 7,
    "start": 7,
    "ttfb": 5,
    "agent": 3,
    "chunks": 3,
    "pace": 3,
    "nagle": 3,
    "bodies": 1,
    "beside": 5,
    "match": 5,
    "nearest": 20,
    "redact": 15,
    "encryption": 15,
    "store": 1,
    "archive": 1,
    "carry": 1,
    "delete": 5,
    "soak": 10,
    "patches": 3,
}
_MOST_ROUNDS = 50


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="*", default=["all"], choices=[*PARTS, "all"])
    parser.add_argument(
        "--rounds", type=int, help=f"of each part, of `soak` minutes; by default {_ROUNDS}"
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds and fewer requests")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="end with one Markdown table of what store, archive, carry and delete found, with the date",
    )
    parser.add_argument("--json", type=Path, help="write every sample to this file")
    parser.add_argument(
        "--large",
        choices=["fill", "record", "skip"],
        default="fill",
        help="how 100,000 exchanges get onto Playhead's tape: by its store, through the proxy, not",
    )
    parser.add_argument(
        "--mitmdump-large",
        action="store_true",
        help="also let mitmdump load 100,000 flows: 40 s and 1 GB each time",
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=0,
        help=f"length of the bodies of `bodies`, {bodies.MEGABYTES} by default",
    )
    parser.add_argument("--no-playhead", action="store_true", help="measure the others alone")
    parser.add_argument("--work", type=Path, help="folder for tapes and stores, which is kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=int, default=7200, help="stop after this many seconds")
    arguments = parser.parse_args()

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(arguments.limit_s)
    parts = (
        [part for part in PARTS if part not in _NOT_IN_ALL]
        if "all" in arguments.part
        else arguments.part
    )
    sections: list[Section] = []
    failed = False
    with _work_folder(arguments.work) as folder, upstream(folder) as port:
        # Starts are compared with compiled modules, as anyone has them from the second start on.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "pycache")
        fault = "left out as asked" if arguments.no_playhead else _try_playhead(folder)
        print(_machine())
        if fault:
            print(f"Playhead is not measured: {fault}")
        for part in parts:
            plan = Plan(
                folder=folder,
                upstream=port,
                rounds=_rounds(arguments.rounds, part, quick=arguments.quick),
                quick=arguments.quick,
                rng=random.Random(arguments.seed),
                say=lambda text: print(f"  .. {text}", file=sys.stderr, flush=True),
                with_playhead=not fault,
                large=arguments.large,
                mitmdump_large=arguments.mitmdump_large,
                megabytes=arguments.megabytes,
            )
            try:
                found = PARTS[part](plan)
            except ToolError as error:
                failed = True
                print(f"\n{part}: could not be measured: {error}", flush=True)
                continue
            sections += found
            for section in found:
                print(render(section), flush=True)
    bars = [bar for section in sections for bar in section.bars]
    print(render_bars(bars))
    if arguments.markdown:
        print(render_joint(sections, f"Measured {time.strftime('%Y-%m-%d')}: {_machine()}."))
    if arguments.json:
        arguments.json.write_text(json.dumps(_report(sections), indent=1))
    return 1 if failed or any(bar.result == "MISSED" for bar in bars) else 0


def _stop(number: int, _: FrameType | None) -> None:
    """Leave through every `finally`, so that nothing is left running."""
    raise SystemExit(f"stopped by {signal.Signals(number).name}")


def _rounds(asked: int | None, part: str, *, quick: bool) -> int:
    return min(_MOST_ROUNDS, max(1, asked or (2 if quick else _ROUNDS[part])))


@contextlib.contextmanager
def _work_folder(kept: Path | None) -> Iterator[Path]:
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="playhead-bench-") as name:
            yield Path(name)


def _try_playhead(folder: Path) -> str:
    """Start Playhead once; give what is wrong, or nothing."""
    try:
        if not importlib.util.find_spec("playhead.proxy.cli"):
            return "it has no command line yet"
        with running([playhead("record", folder, folder / "try", "try")], folder, ready_s=20):
            return ""
    except (ImportError, ToolError) as error:
        return str(error)


def _machine() -> str:
    one, five, _ = os.getloadavg()
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
        f" {platform.release()}, load {one:.1f} (1 min) {five:.1f} (5 min) at the start"
    )


def _report(sections: list[Section]) -> dict[str, object]:
    return {
        "machine": _machine(),
        "bars": [_bar(bar) for section in sections for bar in section.bars],
        "sections": [{"title": one.title, "samples": one.raw} for one in sections],
    }


def _bar(bar: Bar) -> dict[str, object]:
    return {
        "name": bar.name,
        "limit": bar.limit,
        "value": bar.value,
        "unit": bar.unit,
        "result": bar.result,
    }


if __name__ == "__main__":
    sys.exit(main())
