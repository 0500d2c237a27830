"""What a look at the clock costs with a preload, recorded and replayed, by runtime: microseconds of CPU, against the bar of 10.

The rows of `libc` are of the library for programs of other runtimes, where there is a compiler.

uv run python benchmarks/looks.py
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from playhead.proxy.determinism.clock_journal import write_journals
from playhead.proxy.determinism.preload_bundle import PreloadBundle

BAR_US = 10.0
PYTHON = """
import datetime, json, time, timeit
looks = {"time.time": time.time, "datetime.now": datetime.datetime.now}
print(json.dumps({name: min(timeit.repeat(lambda: look(), timer=time.process_time, number=1000, repeat=50)) / 1000 * 1e6 for name, look in looks.items()}))
"""
NODE = """
const looks = { 'Date.now': () => Date.now(), 'new Date': () => new Date() };
const told = {};
for (const [name, look] of Object.entries(looks)) {
  told[name] = Infinity;
  for (let round = 0; round < 50; round += 1) {
    const begin = process.cpuUsage();
    for (let number = 0; number < 1000; number += 1) look();
    const { user, system } = process.cpuUsage(begin);
    told[name] = Math.min(told[name], (user + system) / 1000);
  }
}
console.log(JSON.stringify(told));
"""


C = r"""
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
static double now(void) { struct timespec at; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at); return at.tv_sec * 1e6 + at.tv_nsec / 1e3; }
int main(void) {
    struct timespec at;
    char drawn[16];
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 50; round++) {
        double begin = now();
        for (int number = 0; number < 1000; number++) clock_gettime(CLOCK_REALTIME, &at);
        double middle = now();
        for (int number = 0; number < 1000; number++) if (getrandom(drawn, sizeof drawn, 0) < 0) return 1;
        double end = now();
        if (middle - begin < best[0]) best[0] = middle - begin;
        if (end - middle < best[1]) best[1] = end - middle;
    }
    printf("{\"clock_gettime\": %f, \"getrandom\": %f}", best[0] / 1000, best[1] / 1000);
}
"""


def compiled(folder: str) -> list[str]:
    """Give a program in C; nothing without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return []
    source = os.path.join(folder, "looks.c")
    with open(source, "w") as file:
        file.write(C)
    subprocess.run([compiler, "-O2", "-o", source[:-2], source], check=True, timeout=120)
    return [source[:-2]]


def measure(command: list[str], environ: dict[str, str]) -> dict[str, float]:
    """Run one of the programs; give microseconds by look."""
    done = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=120)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def main() -> int:
    """Print a table; give 1 where the bar is not met."""
    commands = {"python": [sys.executable, "-c", PYTHON]}
    node = shutil.which("node")
    if node is not None:
        commands["node"] = [node, "-e", NODE]
    with tempfile.TemporaryDirectory() as folder:
        if program := compiled(folder):
            commands["libc"] = program
        return 0 if compare(commands) else 1


def compare(commands: dict[str, list[str]]) -> bool:
    """Print the rows; say whether the bar is met."""
    met = True
    print(f"{'look':<24}{'plain':>8}{'record':>8}{'replay':>8}  us")
    for runtime, command in commands.items():
        environ = dict(os.environ)
        plain = measure(command, environ)
        preload_bundle = PreloadBundle.for_recording("full", environ)
        assert preload_bundle is not None
        recorded = measure(command, preload_bundle.variables(environ))
        again = PreloadBundle(preload_bundle.basis, recorded=True)
        write_journals(preload_bundle.looks(), again._tape)
        replayed = measure(command, again.variables(environ))
        for one in (preload_bundle, again):
            one.close()
        for name in plain:
            row = (plain[name], recorded[name], replayed[name])
            print(f"{runtime + ' ' + name:<24}" + "".join(f"{value:>8.2f}" for value in row))
            met = met and max(row[1:]) - row[0] <= BAR_US
    return met


if __name__ == "__main__":
    sys.exit(main())
