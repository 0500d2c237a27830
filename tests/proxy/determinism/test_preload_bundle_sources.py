"""Every source of time and chance that a Python or Node program can reach: a replay has the same value, or the receipt names the source."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from playhead.proxy.processes.disable_aslr import fixed_addresses
from playhead.tests.support.counts import FULL
from playhead.tests.support.needs import need
from playhead.tests.support.preload_bundles import again, new_kit, run
from playhead.timeline.receipts.command.surroundings import Surroundings
from playhead.timeline.receipts.receipt import Receipt
from playhead.timeline.receipts.receipt_parts import Parts

SAME = ""
"""The value comes again."""

PYTHON: dict[str, tuple[str, str]] = {
    # The wall clock
    "time": ("import time; print(time.time(), time.time_ns())", SAME),
    "datetime": ("import datetime; print(datetime.datetime.now(), datetime.date.today())", SAME),
    "realtime": ("import time; print(time.clock_gettime(time.CLOCK_REALTIME))", SAME),
    "strftime": ("import time; print(time.strftime('%s'), time.ctime())", SAME),
    # Clocks that only go on
    "monotonic": ("import time; print(time.monotonic(), time.monotonic_ns())", SAME),
    "perf_counter": ("import time; print(time.perf_counter(), time.perf_counter_ns())", SAME),
    "process_time": ("import time; print(time.process_time(), time.process_time_ns())", SAME),
    "thread_time": ("import time; print(time.thread_time(), time.thread_time_ns())", SAME),
    "clock_gettime": ("import time; print(time.clock_gettime(time.CLOCK_MONOTONIC))", SAME),
    "boottime": ("import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME))", SAME),
    "default_timer": ("import timeit; print(timeit.default_timer())", SAME),
    "os.times": ("import os; print(os.times())", "python: os.times"),
    # Randomness
    "urandom": ("import os; print(os.urandom(8), os.getrandom(8))", SAME),
    "random": ("import random; print(random.random(), random.SystemRandom().random())", SAME),
    "secrets": ("import secrets; print(secrets.token_hex(), secrets.randbelow(10**9))", SAME),
    "uuid": ("import uuid; print(uuid.uuid1(), uuid.uuid4())", SAME),
    "/dev/urandom": ("print(open('/dev/urandom', 'rb').read(8))", SAME),
    "/dev/urandom, unbuffered": ("print(open('/dev/urandom', 'rb', 0).read(8))", SAME),
    "/dev/random": ("import io; print(io.open(b'/dev/random', 'rb').read(8))", SAME),
    "/dev/urandom by a path": (
        "import pathlib; print(pathlib.Path('/dev/urandom').open('rb').read(4))",
        SAME,
    ),
    "/dev/urandom by a descriptor": (
        "import os; print(os.read(os.open('/dev/urandom', os.O_RDONLY), 8))",
        "python: /dev/urandom by a descriptor",
    ),
    "the kernel's uuid": ("print(open('/proc/sys/kernel/random/uuid').read())", SAME),
    "the kernel's uuid by a path": (
        "import pathlib; print(pathlib.Path('/proc/sys/kernel/random/uuid').read_text())",
        SAME,
    ),
    "the order of sets": ("print({'alpha', 'beta', 'gamma', 'delta', 'epsilon'})", SAME),
    # Names
    "mkdtemp": ("import os, tempfile; d = tempfile.mkdtemp(); os.rmdir(d); print(d)", SAME),
    "mkstemp": ("import os, tempfile; f = tempfile.mkstemp()[1]; os.unlink(f); print(f)", SAME),
    "NamedTemporaryFile": ("import tempfile; print(tempfile.NamedTemporaryFile().name)", SAME),
    # Processes
    "getpid": ("import os; print(os.getpid())", "python: os.getpid"),
    "getppid": ("import os, time; print(os.getppid(), os.getpid())", "python: os.getppid"),
    # SQLite
    "sqlite": (
        "import sqlite3; print(sqlite3.connect(':memory:').execute('select random(), hex(randomblob(8))').fetchall())",
        SAME,
    ),
    "sqlite, the order": (
        "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t (n)');"
        "c.executemany('insert into t values (?)', [(n,) for n in range(50)]);"
        "print(c.execute('select n from t order by random()').fetchall())",
        SAME,
    ),
}
NODE: dict[str, tuple[str, str]] = {
    # The wall clock
    "Date": ("console.log(Date.now(), new Date().toISOString(), Date())", SAME),
    "Intl": ("console.log(new Intl.DateTimeFormat('en', { timeStyle: 'full' }).format())", SAME),
    "timeOrigin": ("console.log(performance.timeOrigin)", SAME),
    # Clocks that only go on
    "performance.now": ("console.log(performance.now())", SAME),
    "perf_hooks": ("console.log(require('perf_hooks').performance.now())", SAME),
    "hrtime": ("console.log(process.hrtime(), process.hrtime([1, 2]))", SAME),
    "hrtime.bigint": ("console.log(process.hrtime.bigint())", SAME),
    "uptime": ("console.log(process.uptime(), require('os').uptime())", SAME),
    "cpuUsage": ("console.log(process.cpuUsage())", "node: process.cpuUsage"),
    # Randomness
    "Math.random": ("console.log(Math.random())", SAME),
    "randomUUID": ("console.log(require('crypto').randomUUID(), crypto.randomUUID())", SAME),
    "randomBytes": ("console.log(require('crypto').randomBytes(8))", SAME),
    "getRandomValues": ("console.log(crypto.getRandomValues(new Uint8Array(8)))", SAME),
    "randomInt": ("console.log(require('crypto').randomInt(1e9))", SAME),
    "the kernel's uuid": (
        "console.log(require('fs').readFileSync('/proc/sys/kernel/random/uuid', 'utf8'))",
        "node: /proc/sys/kernel/random/uuid",
    ),
    "/dev/urandom": (
        "const fs = require('fs'); const b = Buffer.alloc(8); fs.readSync(fs.openSync('/dev/urandom'), b); console.log(b)",
        "node: /dev/urandom",
    ),
    "a stream of /dev/urandom": (
        "require('fs').createReadStream('/dev/urandom', { end: 7 }).on('data', (b) => console.log(b))",
        "node: /dev/urandom",
    ),
    "a promise of the kernel's uuid": (
        "require('fs').promises.readFile('/proc/sys/kernel/random/uuid').then((b) => console.log(b))",
        "node: /proc/sys/kernel/random/uuid",
    ),
    # Names
    "mkdtempSync": (
        "const fs = require('fs'); const d = fs.mkdtempSync('/tmp/a'); fs.rmdirSync(d); console.log(d)",
        "node: fs.mkdtempSync",
    ),
    "mkdtemp": (
        "const fs = require('fs'); fs.promises.mkdtemp('/tmp/a').then((d) => { fs.rmdirSync(d); console.log(d) })",
        "node: fs.mkdtemp",
    ),
    # Processes
    "pid": ("console.log(process.pid)", "node: process.pid"),
    "ppid": ("console.log(process.ppid, process.pid)", "node: process.ppid"),
}
ROWS = [
    *(pytest.param("python", name, id=f"python: {name}") for name in PYTHON),
    *(pytest.param("node", name, id=f"node: {name}") for name in NODE),
]


def level_of(told: dict[str, Any]) -> str:
    """Give the fidelity level of a replay of which this was seen."""
    whole = {"level": "full", "missing": "", **told}
    parts = Parts(surroundings=Surroundings(determinism=whole))
    return Receipt("a", "b", "playback", "sealed", parts=parts).level


class Told(NamedTuple):
    """What came of a source, in a recording and in two replays of it."""

    recorded: str
    replayed: list[str]
    evidence: list[dict[str, Any]]
    """Of each replay, as in the receipt; of all that was read in the same program."""


_MARK = "---- "
_WRITTEN = {
    # How a program says whose turn it is, and has each part for itself.
    "python": "print({mark!r}); exec(compile({code!r}, __file__, 'exec'), {{}})\n",
    "node": "console.log({mark!r}); {{ {code} }}\n",
}


def _programs(runtime: str) -> list[list[str]]:
    """Give the sources of each program: all of those that come again; of the others none that is named as another one is."""
    table = PYTHON if runtime == "python" else NODE
    if FULL:
        return [[name] for name in table]
    same = [name for name in table if table[name][1] == SAME]
    named: list[list[str]] = []
    for name in table:
        source = table[name][1]
        if source != SAME:
            free = (part for part in named if all(table[one][1] != source for one in part))
            part = next(free, None)
            if part is None:
                named.append(part := [])
            part.append(name)
    return [same, *named]


def _read(runtime: str, names: list[str], file: Path) -> dict[str, Told]:
    """Record a program that reads some sources, and replay it twice."""
    table = PYTHON if runtime == "python" else NODE
    program = sys.executable if runtime == "python" else need("node")
    parts = [{"mark": f"{_MARK}{name}", "code": table[name][0]} for name in names]
    file.write_text("".join(_WRITTEN[runtime].format(**part) for part in parts))
    bundle = new_kit()
    recorded = run(bundle, program, file)
    replays = [run(again(bundle, recorded.rows), program, file) for _ in range(2)]
    assert [one.err for one in (recorded, *replays)] == [""] * 3
    said = [dict(_split(one.out)) for one in (recorded, *replays)]
    evidence = [one.told for one in replays]
    return {name: Told(said[0][name], [one[name] for one in said[1:]], evidence) for name in names}


def _split(out: str) -> Iterator[tuple[str, str]]:
    for part in out.split(_MARK)[1:]:
        name, _, said = part.partition("\n")
        yield name, said


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Told]:
    """Give what came of a source of a runtime; several are read by one program, unless everything is counted."""
    found: dict[tuple[str, str], Told] = {}

    def tell(runtime: str, name: str) -> Told:
        if (runtime, name) not in found:
            (names,) = (names for names in _programs(runtime) if name in names)
            file = tmp_path_factory.mktemp("sources") / "program"
            found.update({(runtime, one): it for one, it in _read(runtime, names, file).items()})
        return found[runtime, name]

    return tell


@pytest.mark.parametrize(("runtime", "name"), ROWS)
def test_a_source_comes_again_or_is_named(
    runtime: str, name: str, told: Callable[[str, str], Told]
) -> None:
    """Two replays say what the recording said, at level 4; or the receipt names the source, below level 4."""
    _, source = (PYTHON if runtime == "python" else NODE)[name]
    found = told(runtime, name)
    for replayed, evidence in zip(found.replayed, found.evidence, strict=True):
        if source == SAME:
            assert found.recorded
            assert replayed == found.recorded
            assert evidence["sources"] == []
            assert level_of(evidence).startswith("4:")
        else:
            assert source in evidence["sources"]
            assert level_of(evidence).startswith("3:")


LIBRARY = {
    "python": (
        "site-packages/waiting.py",
        "import os, time\ndef look(): return time.monotonic(), os.getpid()\n",
        "import sys, time; sys.path.insert(0, 'site-packages'); import waiting; print(abs(waiting.look()[0] - time.clock_gettime_ns(1) / 1e9) < 60)",
    ),
    "node": (
        "node_modules/waiting/index.js",
        "module.exports = () => [performance.now(), process.pid];\n",
        "console.log(require('waiting')().length)",
    ),
}


@pytest.mark.parametrize("runtime", LIBRARY)
def test_what_libraries_wait_by_is_neither_recorded_nor_named(runtime: str, tmp_path: Path) -> None:
    """They have the real clock in a replay, too: a wait on a recorded one would be over before it began."""
    place, library, code = LIBRARY[runtime]
    program = sys.executable if runtime == "python" else need("node")
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(library)
    (tmp_path / "program").write_text(code.replace("'site-packages'", repr(str(file.parent))))
    bundle = new_kit()
    recorded = run(bundle, program, tmp_path / "program")
    replayed = run(again(bundle, recorded.rows), program, tmp_path / "program")
    for ran in (recorded, replayed):
        assert ran.err == ""
        assert ran.told["sources"] == []
    assert replayed.told["exhausted"] == []


DEADLINE = """
import time
end = time.monotonic() + 0.05
while time.monotonic() < end:
    pass
print(time.monotonic() >= end)
"""


def test_a_deadline_is_met_although_nothing_of_it_was_recorded(tmp_path: Path) -> None:
    """A clock that is read more often than recorded goes on as the real one does."""
    (tmp_path / "program").write_text(DEADLINE)
    ran = run(again(new_kit(), []), sys.executable, tmp_path / "program")
    assert (ran.out, ran.err) == ("True\n", "")
    assert ran.told["exhausted"]


def test_a_command_has_fixed_addresses(tmp_path: Path) -> None:
    """With a recorded clock, and nobody else; we have what we had afterwards."""
    personality = Path("/proc/self/personality")
    if not personality.exists():
        pytest.skip("needs /proc/self/personality")
    before = personality.read_text()
    for clock, expected in (("write", 0x0040000), ("read", 0x0040000), ("off", 0)):
        with fixed_addresses({"PLAYHEAD_CLOCK": clock}):
            assert int(personality.read_text(), 16) & 0x0040000 == expected
        assert personality.read_text() == before
