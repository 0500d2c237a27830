"""What a look at the clock costs with a preload, recorded and replayed, by runtime: microseconds, against the bar of 10.

uv run python benchmarks/looks.py
"""

import json
import os
import shutil
import subprocess
import sys

from playhead.proxy.determinism.journal import write_journals
from playhead.proxy.determinism.kit import Kit

BAR_US = 10.0
PYTHON = """
import datetime, json, time, timeit
looks = {"time.time": time.time, "datetime.now": datetime.datetime.now}
print(json.dumps({name: min(timeit.repeat(lambda: look(), number=1000, repeat=50)) / 1000 * 1e6 for name, look in looks.items()}))
"""
NODE = """
const looks = { 'Date.now': () => Date.now(), 'new Date': () => new Date() };
const told = {};
for (const [name, look] of Object.entries(looks)) {
  told[name] = Infinity;
  for (let round = 0; round < 50; round += 1) {
    const begin = process.hrtime.bigint();
    for (let number = 0; number < 1000; number += 1) look();
    told[name] = Math.min(told[name], Number(process.hrtime.bigint() - begin) / 1000 / 1000);
  }
}
console.log(JSON.stringify(told));
"""


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
    met = True
    print(f"{'look':<24}{'plain':>8}{'record':>8}{'replay':>8}  us")
    for runtime, command in commands.items():
        environ = dict(os.environ)
        plain = measure(command, environ)
        kit = Kit.for_recording("full", environ)
        assert kit is not None
        recorded = measure(command, kit.variables(environ))
        again = Kit(kit.basis, recorded=True)
        write_journals(kit.looks(), again._tape)
        replayed = measure(command, again.variables(environ))
        for one in (kit, again):
            one.close()
        for name in plain:
            row = (plain[name], recorded[name], replayed[name])
            print(f"{runtime + ' ' + name:<24}" + "".join(f"{value:>8.2f}" for value in row))
            met = met and max(row[1:]) - row[0] <= BAR_US
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
