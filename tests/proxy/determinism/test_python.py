"""The preload under the Pythons of this machine: what a program finds of time and chance is found again."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from playhead.proxy.determinism.preload_bundle import PreloadBundle
from playhead.tests.support.preload_bundles import again, new_kit, run

AGENT = Path(__file__).parents[2] / "support" / "clock_reading" / "clock_reads.py"


def pythons() -> dict[str, str]:
    """Those that are there, by their version; in short runs the oldest, the newest and the system's."""
    found = {"3.13 (tests)": sys.executable}
    if Path("/usr/bin/python3").exists():
        found["the system's"] = "/usr/bin/python3"
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    installed = sorted(
        kept.glob("3.*/bin/python"), key=lambda path: int(path.parts[-3].split(".")[1])
    )
    recent = [path for path in installed if int(path.parts[-3].split(".")[1]) >= 8]
    for path in recent if os.environ.get("PLAYHEAD_FULL") else recent[:1]:
        found[path.parts[-3]] = str(path)
    return found


def script(text: str) -> list[str]:
    """A program on the command line."""
    return ["-c", textwrap.dedent(text)]


@pytest.mark.parametrize("version", pythons())
def test_what_is_found_of_time_and_chance_is_found_again(version: str) -> None:
    """By one program in a row, in threads, in tasks, in forks and in children: twice, exactly."""
    python = pythons()[version]
    preload_bundle = new_kit()
    recorded = run(preload_bundle, python, AGENT)
    assert recorded.err == ""
    for _ in range(2):
        replayed = run(again(preload_bundle, recorded.rows), python, AGENT)
        assert replayed.said == recorded.said
        assert replayed.told == recorded.told
    assert recorded.told["preloaded"] == 5
    assert (recorded.told["exhausted"], recorded.told["problems"]) == ([], [])


POOLS = """
    import concurrent.futures, json, multiprocessing, os, random, threading, time, uuid

    def look(_):
        time.sleep(random.SystemRandom().random() / 100)
        return time.time_ns(), random.random(), uuid.uuid4().hex

    def child(which):
        reader, writer = os.pipe()
        if not os.fork():
            os.write(writer, repr(look(which)).encode())
            os._exit(0)
        os.wait()
        found.append([which, os.read(reader, 200).decode()])

    if __name__ == "__main__":
        found = []
        context = multiprocessing.get_context("fork")
        with context.Pool(3) as pool:
            found.append(pool.map(look, range(6), chunksize=1))
            found.append([one.get() for one in [pool.apply_async(look, (0,)) for _ in range(4)]])
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            found.append(list(pool.map(look, range(4))))
        for _ in range(5):
            threads = [threading.Thread(target=child, args=(which,)) for which in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        print(json.dumps(found[:3] + sorted(found[3:])))
"""


def test_a_job_finds_the_same_whichever_process_of_a_pool_takes_it() -> None:
    """And so does a fork, whichever thread's is first; each job has clock reads of its own."""
    preload_bundle = new_kit()
    recorded = run(preload_bundle, sys.executable, "-W", "ignore", *script(POOLS))
    assert recorded.err == ""
    replayed = run(
        again(preload_bundle, recorded.rows), sys.executable, "-W", "ignore", *script(POOLS)
    )
    assert replayed.said == recorded.said
    # A pool begins as many processes as it needs, which is a matter of time.
    counted = dict.fromkeys(("processes", "preloaded"))
    assert {**replayed.told, **counted} == {**recorded.told, **counted}
    assert recorded.told["exhausted"] == []


def test_an_agent_of_many_tasks_finds_the_same_again() -> None:
    """Each is an execution context of its own, and so are those of a long day."""
    program = script(
        """
        import asyncio, hashlib, time
        async def look(): return time.time_ns()
        async def main():
            found = [await asyncio.create_task(look()) for _ in range(6000)]
            print(hashlib.sha256(repr(found).encode()).hexdigest())
        asyncio.run(main())
        """
    )
    preload_bundle = new_kit()
    recorded = run(preload_bundle, sys.executable, *program)
    replayed = run(again(preload_bundle, recorded.rows), sys.executable, *program)
    assert (replayed.out, replayed.told) == (recorded.out, recorded.told)
    assert recorded.told["problems"] == []


def test_without_it_nothing_is_found_again() -> None:
    """The control: every part differs from run to run, but for what has seconds or a day."""
    command = [sys.executable, "-W", "ignore", str(AGENT)]
    first, second = (
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    same = [one[0] for one, other in zip(first, second, strict=True) if one == other]
    assert set(same) <= {"date", "strftime", "tuples", "set"}


def test_a_recording_sees_the_real_clock() -> None:
    """What is told lies between two clock reads of ours."""
    program = script(
        "import time, datetime; print(time.time_ns(), datetime.datetime.now().timestamp())"
    )
    preload_bundle = new_kit()
    ran = run(preload_bundle, sys.executable, *program)
    nanoseconds, seconds = ran.out.split()
    assert 0 <= int(nanoseconds) - preload_bundle.basis.start_ns < 60e9
    assert abs(float(seconds) - int(nanoseconds) / 1e9) < 10


def test_a_recording_is_left_alone_unless_more_is_asked_for() -> None:
    """Nothing is put into a program by default."""
    assert PreloadBundle.for_recording(None, {}) is None
    assert PreloadBundle.for_recording("off", {}) is None


def test_two_recordings_have_nothing_in_common() -> None:
    """Each has a seed of its own."""
    program = script("import uuid; print(uuid.uuid4())")
    assert (
        run(new_kit(), sys.executable, *program).out != run(new_kit(), sys.executable, *program).out
    )


def test_with_the_seed_alone_the_clock_is_real() -> None:
    """Randomness comes again, and nothing is written of the clock."""
    program = script("import time, uuid; print(uuid.uuid4(), time.time_ns())")
    preload_bundle = new_kit()
    recorded = run(preload_bundle, sys.executable, *program)
    replayed = run(again(preload_bundle, [], "seed"), sys.executable, *program)
    first, second = recorded.out.split(), replayed.out.split()
    assert first[0] == second[0]
    assert int(first[1]) < int(second[1])


def test_who_looks_more_often_than_recorded_is_told_of() -> None:
    """Time goes on from the last clock read, and the context is named."""
    preload_bundle = new_kit()
    program = "import sys, time; [time.time_ns() for _ in range(2)]; print(*[time.time_ns() for _ in range({})])"
    recorded = run(preload_bundle, sys.executable, "-c", program.format(1))
    replayed = run(again(preload_bundle, recorded.rows), sys.executable, "-c", program.format(3))
    last = int(recorded.out)
    assert replayed.out.split() == [str(last), str(last + 1000), str(last + 2000)]
    assert replayed.told["exhausted"] == ["0|MainThread||__main__"]


def test_a_seed_of_the_program_is_obeyed() -> None:
    """Who seeds `random` gets the sequence that it knows."""
    program = script(
        "import random; random.seed(7); print(random.random(), random.Random(7).random())"
    )
    plain = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=True)
    assert run(new_kit(), sys.executable, *program).out == plain.stdout


def test_libraries_that_make_keys_get_the_kernels_randomness(tmp_path: Path) -> None:
    """Two signatures with one nonce give the key away; what others ask for comes again."""
    (tmp_path / "ecdsa.py").write_text(
        "import os, secrets\ndef nonces(): return os.urandom(8), secrets.token_bytes(8)\n"
    )
    program = script(
        "import ecdsa, json, os; print(json.dumps([os.urandom(8).hex(), *[one.hex() for one in ecdsa.nonces()]]))"
    )
    preload_bundle = new_kit()
    first, second = (
        run(made, sys.executable, *program, PYTHONPATH=str(tmp_path)).said
        for made in (preload_bundle, again(preload_bundle, []))
    )
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False, False]


def test_a_new_seed_of_the_kernels_is_a_new_one() -> None:
    """Who seeds `random` with nothing, again and again, draws no number twice, and the same in a replay."""
    program = script(
        "import random\nfor _ in range(3): random.seed(); print(random.random(), random.Random().random())"
    )
    preload_bundle = new_kit()
    recorded, replayed = (
        run(made, sys.executable, *program) for made in (preload_bundle, again(preload_bundle, []))
    )
    assert replayed.out == recorded.out
    assert len(set(recorded.out.split())) == 6


def test_the_types_stay_what_they_are() -> None:
    """Pickles, subclasses, error texts and `is` see no difference."""
    program = script(
        """
        import datetime, pickle, random, time, uuid
        class Mine(datetime.datetime): pass
        class Holder: now = time.time
        assert type(datetime.datetime.now()) is datetime.datetime
        assert type(Mine.now()) is Mine and type(Mine.utcnow()) is Mine
        assert Holder().now() > 0 and time.localtime(0).tm_year in (1969, 1970)
        assert pickle.loads(pickle.dumps(time.time)) is time.time
        assert isinstance(random.Random(), random.Random)
        for call in (lambda: time.time(1), lambda: datetime.datetime.now(5)):
            try: call()
            except TypeError: pass
            else: raise AssertionError(call)
        """
    )
    ran = run(new_kit(), sys.executable, "-W", "ignore", *program)
    assert (ran.err, ran.told["problems"]) == ("", [])


def test_a_sitecustomize_of_the_user_runs_too(tmp_path: Path) -> None:
    """Ours stands in front of it, and hands on."""
    (tmp_path / "sitecustomize.py").write_text("print('theirs')\n")
    ran = run(
        new_kit(),
        sys.executable,
        "-c",
        "import sitecustomize as s; print(s.__file__)",
        PYTHONPATH=str(tmp_path),
    )
    assert ran.out.split() == ["theirs", str(tmp_path / "sitecustomize.py")]
    assert ran.told["preloaded"] == 1


def test_a_program_that_closes_every_descriptor_keeps_its_files(tmp_path: Path) -> None:
    """As daemons do: what it opens then is its own, and the journal goes on."""
    program = script(
        """
        import os, sys, time
        time.time()
        os.closerange(3, 100)
        file = open(sys.argv[1], "wb")
        for _ in range(20000): time.time()
        file.close()
        """
    )
    ran = run(new_kit(), sys.executable, *program, tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == b""
    assert (ran.err, ran.told["problems"], len(ran.rows)) == ("", [], 1)


UNCOVERED: Mapping[str, list[str]] = {
    "isolated": ["-I", "-c", "pass"],
    "no site": ["-S", "-c", "pass"],
    "another program": ["-c", "import subprocess; subprocess.run(['true'])"],
}


@pytest.mark.parametrize("case", UNCOVERED)
def test_what_runs_without_the_preload_is_named(case: str) -> None:
    """The program's name, without its arguments."""
    ran = run(new_kit(), sys.executable, *UNCOVERED[case])
    name = "true" if case == "another program" else Path(sys.executable).name
    assert ran.told["uncovered"] == [name]
    assert ran.told["processes"] == ran.told["preloaded"] + 1


def test_processes_that_a_shell_starts_are_told_apart() -> None:
    """They are given one context, and count on."""
    shell = "for i in 1 2; do python -c 'import time; print(time.time_ns())'; done".replace(
        "python", sys.executable
    )
    preload_bundle = new_kit()
    recorded = run(preload_bundle, "/bin/sh", "-c", shell)
    replayed = run(again(preload_bundle, recorded.rows), "/bin/sh", "-c", shell)
    assert replayed.out == recorded.out
    assert len(set(recorded.out.split())) == 2


def test_aiohttp_follows_the_proxy_unless_it_is_told_not_to() -> None:
    """Its default session would go past it."""
    program = script(
        """
        import aiohttp, asyncio
        async def main():
            for given in ({}, {"trust_env": False}):
                async with aiohttp.ClientSession(**given) as session:
                    print(session.trust_env)
        asyncio.run(main())
        """
    )
    ran = run(new_kit(), sys.executable, *program, HTTPS_PROXY="http://127.0.0.1:1")
    assert ran.out.split() == ["True", "False"]


SURPRISES = {
    "no variables": (
        """
        import os; os.environ.clear()
        import certifi, http.client, time
        if not os.fork(): print(time.time() > 1e9, flush=True); os._exit(0)
        os.wait(); print(certifi.where())
        """,
        "True\n{bundle}",
    ),
    "words by name": ("import os; os.execve('/bin/echo', argv=['echo', 'there'], env={})", "there"),
    "what is not there": (
        """
        import os, subprocess
        try: subprocess.run(["nowhere-at-all"])
        except FileNotFoundError: print("missing", flush=True)
        os.execvp("echo", ["echo", "found"])
        """,
        "missing\nfound",
    ),
}


@pytest.mark.parametrize("case", SURPRISES)
def test_a_program_is_not_broken_by_it(case: str, tmp_path: Path) -> None:
    """Calls that are rare and right do what they do without it; nothing is told of what never ran."""
    code, expected = SURPRISES[case]
    bundle = tmp_path / "bundle.pem"
    bundle.touch()
    ran = run(
        new_kit(),
        sys.executable,
        *script(code),
        HTTPS_PROXY="http://127.0.0.1:1",
        SSL_CERT_FILE=str(bundle),
    )
    assert (ran.err, ran.out.strip()) == ("", expected.format(bundle=bundle))
    assert ran.told["problems"] == []
    assert len(ran.told["uncovered"]) <= 1  # echo


def test_a_library_that_changes_the_interpreters_own_functions_finds_them(tmp_path: Path) -> None:
    """`time_machine` writes into their structures, whatever stands there: the program would crash."""
    (tmp_path / "time_machine.py").write_text("import time\nOWN = time.time\n")
    code = """
        import time_machine, datetime, time
        own = [time_machine.OWN, time.time, time.time_ns, time.gmtime, time.strftime, datetime.datetime.now, datetime.datetime.utcnow]
        print({type(one).__name__ for one in own})
        """
    ran = run(new_kit(), sys.executable, *script(code), PYTHONPATH=str(tmp_path))
    assert ran.out == "{'builtin_function_or_method'}\n"
    assert "time_machine needs the real clock" in ran.told["problems"][0]


def test_a_module_that_was_looked_for_is_changed_when_it_is_imported() -> None:
    """Many ask whether there is one, and import it later."""
    code = "import importlib.util; importlib.util.find_spec('uuid'); import uuid; print(uuid.uuid1().node)"
    preload_bundle = new_kit()
    recorded = run(preload_bundle, sys.executable, "-c", code)
    assert run(again(preload_bundle, recorded.rows), sys.executable, "-c", code).out == recorded.out
    assert run(new_kit(), sys.executable, "-c", code).out != recorded.out


def test_uuids_by_the_clock_have_one_node_in_all_processes() -> None:
    """Which process takes a job is chance, and a machine has one node."""
    code = """
        import subprocess, sys, uuid
        child = [sys.executable, "-c", "import uuid; print(uuid.uuid1().node)"]
        print(uuid.uuid1().node == int(subprocess.run(child, capture_output=True).stdout))
        """
    assert run(new_kit(), sys.executable, *script(code)).out == "True\n"


def test_uuids_and_temporary_names_are_those_of_their_job_in_whatever_order_jobs_run() -> None:
    """The modules keep the last UUID, and a generator for names, which another job may have used: so every job has its own."""
    code = """
        import os, tempfile, uuid
        from concurrent.futures import ThreadPoolExecutor
        from threading import Event
        first, ready = os.environ["FIRST"], Event()
        def job(name):
            if name != first:
                ready.wait()
            found = [str(uuid.uuid1()) for _ in range(3)] + [tempfile.mktemp() for _ in range(2)]
            ready.set()
            return found
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(job, "ab")))
        """
    preload_bundle = new_kit()
    recorded = run(preload_bundle, sys.executable, *script(code), FIRST="a")
    for first in "ab":
        replayed = run(again(preload_bundle, recorded.rows), sys.executable, *script(code), FIRST=first)  # fmt: skip
        assert replayed.out == recorded.out


def test_a_preload_that_fails_stops_nobody(tmp_path: Path) -> None:
    """The program runs as without it, and one line says so."""
    preload_bundle = new_kit()
    preload_bundle.close()  # nothing can be written
    ran = run(preload_bundle, sys.executable, "-c", "import time; print(time.time() > 1e9)")
    assert ran.out == "True\n"
    assert "without the preload" in ran.err
