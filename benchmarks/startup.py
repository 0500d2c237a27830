"""How long commands take until they are done with nothing to do: CPU, wall time and imported modules, against `curl` alone.

    uv run python benchmarks/startup.py [--rounds 9] [--beside PROGRAM]

Each round runs every command once, one after the other, so that a busy moment hits all of them; given are medians. CPU is that
of the whole process tree that was waited for, in user and kernel mode; it says more than wall time on a machine that is not idle.
`record` and `replay` have `curl` as their command: *overhead* is their time less that of `curl` alone. With `--beside` a second
`playhead` (as that of an older checkout) is measured in the same rounds. The first round, which fills caches, is not counted.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BARS_S = {"--help": 0.25, "runs": 0.25, "show": 0.25, "record": 0.5, "replay": 0.5}
"""Longest wall time on an idle machine; of `record` and `replay` the overhead."""
_DIRECT = "curl alone"
_OVER_DIRECT = ("record", "replay")


class _Hello(BaseHTTPRequestHandler):
    """Answers at once."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Seen:
    """What was measured of one command."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def take(self, command: Sequence[str], folder: Path) -> None:
        """Run it once more."""
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s.append(time.perf_counter() - began)
        self.cpu_s.append(used.ru_utime + used.ru_stime)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")


def commands(program: Sequence[str], url: str, store: Path) -> dict[str, list[str]]:
    """Give the commands by name, after a run has been recorded."""
    flags = ["--store", str(store)]
    curl = ["--", "curl", "-s", url]
    subprocess.run(
        [*program, "record", "--run", "first", *flags, *curl], check=True, capture_output=True
    )
    return {
        "--help": [*program, "--help"],
        "runs": [*program, "runs", *flags],
        "show": [*program, "show", "first", *flags],
        "record": [*program, "record", *flags, *curl],
        "replay": [*program, "replay", "first", *flags, *curl],
        "replay --no-sandbox": [*program, "replay", "first", "--no-sandbox", *flags, *curl],
    }


def count_modules(command: Sequence[str], folder: Path) -> int:
    """Count the modules that a command imports."""
    environ = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
    )
    return sum(line.startswith(b"import time:") for line in done.stderr.splitlines()) - 1


def measure(
    programs: Mapping[str, Sequence[str]], rounds: int, folder: Path
) -> tuple[dict[tuple[str, str], Seen], dict[tuple[str, str], int]]:
    """Measure each command of each program; give what was seen, and the modules that were imported."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    planned = {("", _DIRECT): ["curl", "-s", url]}
    for label, program in programs.items():
        work = folder / label
        work.mkdir()
        for name, command in commands(program, url, work / "store").items():
            planned[label, name] = command
    seen = {which: Seen() for which in planned}
    for number in range(rounds + 1):
        for which, command in planned.items():
            seen[which].take(command, folder)
            if not number:
                seen[which] = Seen()
    modules = {
        which: count_modules(command, folder) for which, command in planned.items() if which[0]
    }
    server.shutdown()
    return seen, modules


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beside", type=Path, help="another playhead to be measured beside")
    arguments = parser.parse_args()
    if shutil.which("curl") is None:
        raise SystemExit("curl is needed: it is what is recorded")
    # Else each process compiles all that it imports, unless somebody has done so before.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    programs = {"this": [str(Path(sys.executable).with_name("playhead"))]}
    if arguments.beside is not None:
        programs["beside"] = [str(arguments.beside)]
    with tempfile.TemporaryDirectory() as folder:
        seen, modules = measure(programs, arguments.rounds, Path(folder))
    direct = seen["", _DIRECT]
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{arguments.rounds} rounds, load {load}, {os.cpu_count()} processors\n")
    print("| playhead | command | wall | overhead | bar | CPU | modules |")
    print("|---|---|---|---|---|---|---|")
    for (label, name), one in seen.items():
        wall, cpu = statistics.median(one.wall_s), statistics.median(one.cpu_s)
        over = wall - statistics.median(direct.wall_s) if name.startswith(_OVER_DIRECT) else wall
        bar = BARS_S.get(name)
        print(
            f"| {label} | {name} | {wall:.2f} s | {over:.2f} s | {bar or ''} | {cpu:.2f} s |"
            f" {modules.get((label, name), '')} |"
        )


if __name__ == "__main__":
    main()
