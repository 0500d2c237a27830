"""The library for programs that are linked with a C library: what they find of time and chance is found again."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from playhead.proxy.determinism.libc import preload_library
from playhead.proxy.determinism.libc.preload_library import NoLibrary, get_library, place_library
from playhead.tests.support.needs import need
from playhead.tests.support.preload_bundles import Ran, again, new_kit, run

SOURCE = Path(__file__).parents[3] / "support" / "clock_reading" / "clock_reads.c"
SHELL = "date +%N; (date +%N | cat) & wait; date +%N | cat; mktemp -u; {python} -c 'import time; print(time.time_ns())'"


@pytest.fixture(scope="module", autouse=True)
def compiler() -> str:
    """That of this machine."""
    return need("a C compiler")


@dataclass(frozen=True)
class Programs:
    """`clock_reads.c` in several ways."""

    plain: str
    tls: str


@pytest.fixture(scope="module")
def programs(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    folder = tmp_path_factory.mktemp("clock_reads")
    flags = {"plain": (), "tls": ("-DSPEAKS_TLS",)}
    return Programs(*(build(folder / name, compiler, *more) for name, more in flags.items()))


def build(program: Path, compiler: str, *flags: str) -> str:
    """Compile `clock_reads.c`."""
    subprocess.run([compiler, "-pthread", *flags, "-o", program, SOURCE], check=True)
    return str(program)


def twice(*command: str) -> tuple[Ran, Ran]:
    """Run a program, and again in a replay of that."""
    preload_bundle = new_kit(libc=True)
    assert preload_bundle.no_library == ""
    recorded = run(preload_bundle, *command)
    assert recorded.err == ""
    return recorded, run(again(preload_bundle, recorded.rows), *command)


PROGRAMS = {
    "date": ["date", "+%s.%N"],
    "a shell": ["sh", "-c", SHELL.format(python=sys.executable)],
    "without variables": [
        "env",
        "-i",
        "sh",
        "-c",
        f"env -i {sys.executable} -c 'import time, uuid; print(time.time_ns(), uuid.uuid4())'",
    ],
    "bash": ["bash", "-c", "echo $EPOCHREALTIME; printf '%(%c)T '; echo $SRANDOM"],
    "perl": ["perl", "-e", "print time, ' ', scalar localtime, ' '; print `date +%N`"],
    "awk": ["awk", "BEGIN { srand(); print rand() }"],
    "java": ["java", "-XX:TieredStopAtLevel=1", "Looks.java"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_finds_the_same_again(program: str, tmp_path: Path) -> None:
    """And its children do, also those that run at the same time."""
    command = PROGRAMS[program]
    need(command[0])
    if program == "java":
        if "PLAYHEAD_FULL" not in os.environ:
            pytest.skip("a second for each start")
        source = tmp_path / "Looks.java"
        source.write_text(
            "class Looks { public static void main(String[] words)"
            ' { System.out.println(System.currentTimeMillis() + " " + java.time.Instant.now()); } }'
        )
        command = [*command[:-1], str(source)]
    recorded, replayed = twice(*command)
    assert recorded.out.strip()
    assert replayed.out == recorded.out
    assert replayed.told == recorded.told
    assert recorded.told["preloaded"] == recorded.told["processes"] > 0
    assert (recorded.told["exhausted"], recorded.told["problems"]) == ([], [])


@pytest.mark.parametrize("what", ["look", "threads", "draw"])
def test_clock_reads_of_processes_and_threads_are_separate(programs: Programs, what: str) -> None:
    """By every function of the C library."""
    recorded, replayed = twice(programs.plain, what)
    assert replayed.out == recorded.out
    assert len(set(recorded.out.split())) > 1 or what == "draw"


def test_a_process_that_no_function_made_has_its_own_context(programs: Programs) -> None:
    """By the system call: what it draws is not what its parent draws, and their clock reads are kept apart."""
    recorded, replayed = twice(programs.plain, "clone")
    assert replayed.out == recorded.out
    assert replayed.told == recorded.told
    assert (recorded.told["preloaded"], recorded.told["exhausted"]) == (3, [])
    drawn = [line for line in recorded.out.splitlines() if " " not in line]
    assert len(set(drawn)) == len(drawn) == 3


DEEP = {
    "c": ["sh", "-c", "date +%N; date +%N | cat"],
    "python": [
        sys.executable,
        "-c",
        "import os, time; pid = os.fork(); pid and os.waitpid(pid, 0); print(time.time_ns(), flush=True);"
        " os.system('date +%N')",
    ],
    "node": [
        "node",
        "-e",
        "const { execSync } = require('child_process');"
        "for (const _ of '12') console.log(`${execSync('date +%N')}`, Date.now());",
    ],
}


@pytest.mark.parametrize("runtime", DEEP)
def test_what_is_started_deep_down_is_found_again(runtime: str) -> None:
    """As by a program that executes itself a hundred times: the journals of its children have names that are taken."""
    command, deep = DEEP[runtime], "0" + ".1" * 98
    need(command[0])
    preload_bundle = new_kit(libc=True)
    recorded = run(preload_bundle, *command, context=deep)
    replayed = run(again(preload_bundle, recorded.rows), *command, context=deep)
    assert recorded.err == ""
    assert replayed.out == recorded.out
    assert (replayed.told["exhausted"], replayed.told["problems"]) == ([], [])
    assert recorded.told["runtimes"] == replayed.told["runtimes"]


def test_without_it_nothing_is_found_again(programs: Programs) -> None:
    """The control."""
    for what in ("look", "draw"):
        first, second = (run(new_kit(), programs.plain, what).out for _ in range(2))
        assert first != second


def test_a_deadline_on_the_told_clock_is_waited_for_on_the_kernels(programs: Programs) -> None:
    """Neither at once nor forever, however long ago the recording was."""
    preload_bundle = new_kit(libc=True)
    recorded = run(preload_bundle, programs.plain, "wait")
    replayed = run(again(preload_bundle, recorded.rows), programs.plain, "wait")
    for ran in (recorded, replayed):
        assert 0.049 <= float(ran.out) < 30


FULL = """
mount -t tmpfs -o size=$2 none "$1" || exit 77
PLAYHEAD_CLOCK=write PLAYHEAD_NOTES="$1" PLAYHEAD_TAPE="$1" PLAYHEAD_LIBRARY="$3" LD_PRELOAD="$3" "$4" threads | wc -l
cat "$1/0.c.notes"
[ ! -e "$1/0.c.looks" ] || stat -c "%s bytes" "$1/0.c.looks"
"""


@pytest.mark.parametrize(("size", "bytes_kept"), [("12k", 0), ("16k", 12 << 10)])
def test_a_full_disk_ends_the_journal_and_not_the_program(
    programs: Programs, tmp_path: Path, size: str, bytes_kept: int
) -> None:
    """At the first clock read, or later; it is told of, as far as there is room for that."""
    command = ["unshare", "-rm", "sh", "-c", FULL, "sh"]
    need("private mounts")
    if os.sysconf("SC_PAGESIZE") != 4096:
        pytest.skip("needs pages of 4 KiB")
    done = subprocess.run(
        [*command, str(tmp_path), size, str(get_library()), programs.plain],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    clock_reads, *notes = done.stdout.splitlines()
    assert clock_reads == "1600"
    assert "problem\tthe journal cannot be written" in notes
    assert notes[-1] == f"{bytes_kept} bytes"


def test_a_program_that_may_speak_tls_draws_real_randomness(programs: Programs) -> None:
    """By what it holds, as it may be linked into it; the receipt names it."""
    recorded, replayed = twice(programs.tls, "draw")
    assert replayed.out != recorded.out
    assert replayed.told["kernel_randomness"] == ["tls"]


@pytest.mark.parametrize(
    "program",
    [
        ["openssl", "rand", "-hex", "8"],
        [sys.executable, "-c", "import ssl; print(ssl.RAND_bytes(8))"],
    ],
    ids=["openssl", "python"],
)
def test_keys_are_never_drawn_by_a_seed(program: list[str]) -> None:
    """OpenSSL's own randomness is the kernel's in a recording and in every replay."""
    need(program[0])
    recorded, replayed = twice(*program)
    assert recorded.out.strip()
    assert replayed.out != recorded.out
    assert replayed.told["kernel_randomness"] == []


def test_what_it_cannot_be_loaded_into_is_named(tmp_path: Path) -> None:
    """What is linked statically, as Go's programs are; the loader says nothing."""
    static = build(tmp_path / "static", need("a C compiler that links statically"), "-static")
    ran = run(new_kit(libc=True), "sh", "-c", f"{static} draw; true")
    assert (ran.err, ran.told["uncovered"]) == ("", ["static"])


def test_c_code_in_python_finds_the_same_again() -> None:
    """SQLite's clock is the C library's; the interpreter's own clock reads are reported by its preload alone."""
    code = """if 1:
        import queue, sqlite3, time
        print(sqlite3.connect(":memory:").execute("select strftime('%f', 'now')").fetchone(), time.time_ns())
        try: queue.Queue().get(timeout=0.01)
        except queue.Empty: pass
    """
    recorded, replayed = twice(sys.executable, "-c", code)
    assert replayed.out == recorded.out
    assert replayed.told == recorded.told
    assert [one.split()[0] for one in recorded.told["runtimes"]] == ["python"]


def test_a_program_sleeps_a_thousandth_where_that_is_declared() -> None:
    """Were it real, the program would be killed."""
    preload_bundle = new_kit(libc=True)
    ran = run(
        again(preload_bundle, [], short_sleeps=True),
        "sh",
        "-c",
        "sleep 100; env -i sleep 100; echo awake",
    )
    preload_bundle.close()
    assert ran.out == "awake\n"


def test_it_is_compiled_once_into_a_folder_that_nobody_else_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its hash; found again without a compiler, and refused where others could have changed it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = get_library()
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    monkeypatch.setattr(preload_library, "_COMPILERS", ())
    assert get_library() == made
    for path in (made, made.parent):
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        with pytest.raises(NoLibrary, match=r"others can write .* chmod go-w"):
            get_library()
        path.chmod(mode)


def test_a_folder_that_the_loader_cannot_take_is_told_of(tmp_path: Path) -> None:
    """A blank ends a path there."""
    folder = tmp_path / "a blank"
    folder.mkdir()
    with pytest.raises(NoLibrary, match="no path with a blank"):
        place_library(folder)


def test_what_lacks_a_function_is_refused_when_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not in the middle of a program: compilers call helpers that stand elsewhere."""
    source = tmp_path / "clock.c"
    source.write_text("int nowhere_at_all(void);\nint look(void) { return nowhere_at_all(); }\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(preload_library, "SOURCE", source)
    monkeypatch.setattr(
        preload_library, "_FLAGS", (*preload_library._FLAGS, "-fvisibility=default")
    )
    with pytest.raises(NoLibrary, match="cannot be loaded"):
        get_library()


def test_a_user_without_a_home_has_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers that run as anybody: one sentence, and all else as ever."""

    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(NoLibrary, match="no home; set XDG_CACHE_HOME"):
        get_library()


def test_a_program_with_the_address_sanitizer_starts(tmp_path: Path) -> None:
    """It wants to be the first library, else."""
    program = tmp_path / "sanitized"
    compiler = need("a C compiler with the address sanitizer")
    build(program, compiler, "-fsanitize=address")
    assert run(new_kit(libc=True), str(program), "draw").err == ""


LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *before = NULL;
    for (int which = 1; which < count; which++) {
        void *library = dlopen(words[which], RTLD_NOW), *draw = dlsym(library, "draw");
        printf("%d %llx\\n", draw == before, ((unsigned long long (*)(void))draw)());
        before = draw;
        dlclose(library);
    }
}
"""
DRAW = """
#include <sys/random.h>
const char *what = WHAT;
unsigned long long draw(void) { unsigned long long made; getrandom(&made, sizeof made, 0); return made; }
"""


def test_what_is_loaded_where_another_library_was_is_read_too(
    compiler: str, tmp_path: Path
) -> None:
    """It may speak TLS, and the one that was there before did not."""
    (tmp_path / "loader.c").write_text(LOADER)
    (tmp_path / "draw.c").write_text(DRAW)
    subprocess.run([compiler, "-o", tmp_path / "loader", tmp_path / "loader.c", "-ldl"], check=True)
    libraries = []
    for name, what in (("plain", "not much at all"), ("speaks", "tls13 resumption")):
        libraries.append(str(tmp_path / f"{name}.so"))
        more = ["-shared", "-fPIC", f'-DWHAT="{what}"', "-o", libraries[-1]]
        subprocess.run([compiler, *more, tmp_path / "draw.c"], check=True)
    recorded, replayed = twice(str(tmp_path / "loader"), *libraries)
    first, second = recorded.out.splitlines(), replayed.out.splitlines()
    assert first[1].startswith("1 ")  # the same place
    assert first[0] == second[0]
    assert first[1] != second[1]


WITHOUT = {
    "no compiler": ((), "there is no C compiler"),
    "a compiler that fails": (("false",), "cannot be compiled"),
    "one that makes what cannot be loaded": (("touch",), "cannot be"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_without_a_compiler_all_else_is_as_ever(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python and Node are covered; the receipt says what is not, and why."""
    compilers, why = WITHOUT[case]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(preload_library, "_COMPILERS", compilers)
    preload_bundle = new_kit(libc=True)
    assert why in preload_bundle.no_library
    ran = run(preload_bundle, sys.executable, "-c", "import subprocess; subprocess.run(['true'])")
    assert (ran.err, ran.told["preloaded"], ran.told["uncovered"]) == ("", 1, ["true"])
    assert list((tmp_path / "playhead").iterdir()) == []
