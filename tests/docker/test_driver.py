"""`playhead replay --sandbox docker`: an agent that is an image, with the proxy where the person is."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from playhead import __path__ as playhead_path
from playhead.store import Store
from playhead.tests.support.apart import told_by
from playhead.tests.support.docker import IMAGE, containers, docker
from playhead.tests.support.process import COMMAND, playhead, read_json, wait_until
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.ways_out import NOT_EVERYWHERE, RACES, SINGLE

BARE = """
import os, random, sys, time, urllib.request, uuid
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]
def say(text, url="https://api.test/v1/runs"):
    asked = urllib.request.Request(url, text, {"content-type": "application/json"})
    print(urllib.request.urlopen(asked, timeout=20).read().decode(), flush=True)
"""
ONCE = BARE + "say(b'')\n"


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """After all of them there are the containers that there were before."""
    before = containers()
    yield
    wait_until(lambda: containers() <= before, 20, 0.2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a tape of one exchange."""
    folder = tmp_path_factory.mktemp("driver") / "store"
    with Store.open(folder) as opened:
        record_run(opened, "tape", [ask()])
    return folder


@pytest.fixture(scope="module")
def root_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image with root as its user."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\nUSER 0:0\n")
    name = "playhead-root-test"
    docker("build", "--tag", name, folder, env={"DOCKER_BUILDKIT": "0"})
    yield name
    docker("rmi", "--force", name)


def _run(
    store: Path, verb: str, run: str, *command: str, flags: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    named = (run,) if verb == "replay" else ("--run", run)
    given = (verb, *named, "--store", store, "--sandbox", "docker", "--image", IMAGE, "--json")
    return playhead(*given, *flags, "--", *command, env=env)


def _receipt(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr.startswith("{"), (done.returncode, done.stderr)
    return json.loads(done.stderr)  # type: ignore[no-any-return]


def test_what_knows_no_proxy_is_answered_from_the_tape(store: Path) -> None:
    """The receipt has the kernel's counters, the names and the image; files of ours are where they are here."""
    done = _run(store, "replay", "tape", "python", "-c", ONCE)
    receipt = _receipt(done)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert (receipt["faithful"], receipt["contained"]) == (True, True)
    told = receipt["sandbox"]
    assert told["counters"]["packets_out"] == 0 < told["counters"]["packets_inside"]
    assert told["tapped"]
    assert {row["name"] for row in told["names"]} == {"api.test"}
    assert told["image"].startswith(f"{IMAGE} sha256:")


def test_the_exit_code_is_the_agents(store: Path) -> None:
    """Of an agent whose replay is faithful."""
    done = _run(store, "replay", "tape", "python", "-c", f"{ONCE}sys.exit(7)")
    assert done.returncode == 7, done.stderr


TRY = """
import socket
for _ in range(2):
    socket.socket().connect_ex(("192.0.2.7", 22))
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("2001:db8::7", 123))
"""


def test_who_tries_to_leave_is_123(store: Path) -> None:
    """By destination and count, as the kernel saw it."""
    done = _run(store, "replay", "tape", "python", "-c", ONCE + TRY)
    receipt = _receipt(done)
    assert done.returncode == 123, receipt
    tried = {(row["protocol"], row["target"], row["count"]) for row in receipt["egress"]}
    assert tried == {("tcp", "192.0.2.7:22", 2), ("udp", "[2001:db8::7]:123", 1)}


class _Origin(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"live")

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def origin() -> Iterator[str]:
    """An origin of this machine; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Origin) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PROXIED = """
import os, sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(url, urllib.request.urlopen(url, timeout=20).read().decode(), flush=True)
    except Exception as error:
        print("error", url, error, flush=True)
"""


def test_one_live_rule_reaches_its_host_and_nothing_else(
    store: Path, origin: str, tmp_path: Path
) -> None:
    """The agent still has no way out: it is the proxy that has."""
    config = tmp_path / "live.yaml"
    config.write_text(f"live:\n  - {{match: 'GET {origin}/live', reason: the test}}\n")
    agent = ("python", "-c", PROXIED, f"{origin}/live", f"{origin}/dead")
    done = _run(store, "replay", "tape", *agent, flags=("-c", str(config)))
    receipt = _receipt(done)
    assert done.stdout.splitlines()[0] == f"{origin}/live live"
    assert done.stdout.splitlines()[1].startswith(f"error {origin}/dead")
    assert (receipt["counts"]["live"], receipt["counts"]["refused"]) == (1, 1)


PROMPT = f"""{BARE}
import json
for turn in range(3):
    time.sleep(0.01)
    said = [time.time(), str(uuid.uuid4()), random.random(), os.urandom(4).hex()]
    say(json.dumps(said).encode(), sys.argv[1])
"""


def test_a_clock_in_a_prompt_is_replayed(store: Path, origin: str) -> None:
    """The recording's clock and entropy come back in the container: three prompts, byte for byte."""
    agent = ("python", "-c", PROMPT, f"{origin}/v1/chat")
    words = (*agent[:2], PROMPT.replace("del os.environ[name]", "pass"), agent[3])
    recorded = _run(store, "record", "clock", *words, flags=("--determinism", "full"))
    assert recorded.returncode == 0, recorded.stderr
    replayed = _run(store, "replay", "clock", *words)
    receipt = _receipt(replayed)
    assert (replayed.returncode, receipt["matched"]) == (0, {"exact": 3}), receipt
    assert receipt["determinism"]["preloaded"] == 1


def test_who_started_it_need_not_be_who_runs(root_image: str) -> None:
    """Somebody without rights starts an image whose user is root: what each writes the other can read."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    recorded, replayed = told_by("docker_somebody", root_image, timeout_s=100)
    assert recorded["receipt"]["determinism"]["preloaded"] == 1
    assert replayed["receipt"]["determinism"]["preloaded"] == 1
    assert recorded["said"] == replayed["said"]


def test_variables_and_folders_are_given_where_asked_for(store: Path, tmp_path: Path) -> None:
    """And of this machine's variables nothing else."""
    (tmp_path / "said").write_text("shared")
    for folder in (tmp_path / "said", tmp_path):
        folder.chmod(0o755)
    code = "import os; print(sorted(set(os.environ) & {'ONE', 'TWO', 'THREE'}), open('/in/said').read())"
    flags = ("--env", "ONE=1", "--env", "TWO", "--volume", f"{tmp_path}:/in:ro")
    done = _run(store, "replay", "tape", "python", "-c", code, flags=flags, TWO="2", THREE="3")
    assert done.stdout == "['ONE', 'TWO'] shared\n", done.stderr


# ---- what is wrong -----------------------------------------------------------------------------------


def _lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 125, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2, lines
    assert lines[1].startswith("  hint: ")
    return lines


def test_an_image_that_is_missing(store: Path) -> None:
    """What it is called, and how to have it."""
    done = _run(store, "replay", "tape", "true", flags=("--image", "no-such-image"))
    lines = _lines(done)
    assert lines[0] == "playhead: there is no image 'no-such-image' here"
    assert "docker pull no-such-image" in lines[1]


def test_an_image_of_ours_that_is_missing(store: Path) -> None:
    """It is needed beside the agent's."""
    lines = _lines(_run(store, "replay", "tape", "true", PLAYHEAD_IMAGE="no-such-playhead"))
    assert lines[0] == "playhead: there is no image 'no-such-playhead' here"
    assert "docker build -t playhead ." in lines[1]


@pytest.mark.parametrize("program", ["no-such-program", "/opt/no-such-program"])
def test_an_agent_that_is_not_in_the_image(store: Path, program: str) -> None:
    """Found out before it is started: Docker's own words are not among ours."""
    lines = _lines(_run(store, "replay", "tape", program))
    assert lines[0] == f"playhead: cannot start '{program}': image '{IMAGE}' has no such program"


def test_an_agent_that_cannot_be_executed(store: Path) -> None:
    """A file that is no program."""
    done = _run(store, "replay", "tape", "/etc/passwd")
    assert done.returncode == 125
    assert "cannot start '/etc/passwd' in image" in done.stderr


def test_a_port_inside_that_is_busy(tmp_path: Path) -> None:
    """Two services with one address: the network says which."""
    config = tmp_path / "busy.yaml"
    rule = "{match: 'tcp://127.0.0.1:1023', reason: the test}"
    config.write_text(f"live:\n  - {rule}\n")
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    done = _run(tmp_path / "store", "replay", "tape", "true", flags=("-c", str(config)))
    lines = _lines(done)
    assert "127.0.0.1:1023 is the proxy's own in a sandbox" in lines[0]


# ---- what is left ------------------------------------------------------------------------------------

STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("up", flush=True)
time.sleep(600)
"""
OBEDIENT = f"{ONCE}print('up', flush=True); time.sleep(600)"


def _start(store: Path, code: str) -> subprocess.Popen[bytes]:
    flags = ("--store", str(store), "--sandbox", "docker", "--image", IMAGE)
    process = subprocess.Popen(
        [*COMMAND, "replay", "tape", *flags, "--", "python", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    assert process.stdout is not None
    while (line := process.stdout.readline()) != b"up\n":
        assert line, "the agent did not start"
    return process


def _ours() -> set[str]:
    return {name for name in containers() if name.startswith("playhead-") and "-test" not in name}


def test_after_ctrl_c_nothing_is_left(store: Path) -> None:
    """The agent is told, and the run has its receipt; both containers are gone with us."""
    before = _ours()
    process = _start(store, OBEDIENT)
    assert len(_ours() - before) == 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert _ours() == before
    newest = max(read_json("runs", "--store", store), key=lambda row: row["created_ns"])
    assert read_json("receipt", newest["id"], "--store", store)["child_exit"] == 130


def test_after_a_kill_nothing_is_left(store: Path) -> None:
    """Killed without a word: neither a stubborn agent nor what left its session lives on."""
    before = _ours()
    process = _start(store, STUBBORN)
    started = _ours() - before
    assert len(started) == 2
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: _ours() == before, 20, 0.1)
    running = docker("ps", "--quiet").stdout
    assert not any(name in running for name in started)


# ---- ways out ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tried(root_image: str) -> dict[str, dict[str, str]]:
    """What is open on a machine, and in containers of it."""
    if os.geteuid() != 0:
        pytest.skip("only root finds everything open without a container")
    found: dict[str, dict[str, str]] = told_by("docker_escapes", IMAGE, root_image, timeout_s=180)
    return found


def _open(found: dict[str, str]) -> set[str]:
    return {name for name, said in found.items() if said == "open"}


@pytest.mark.timeout(200)
def test_the_tries_work_where_nothing_holds_them(tried: dict[str, dict[str, str]]) -> None:
    """What is closed in a container is closed by it."""
    bare = tried["bare"]
    closed = {name for name in set(bare) - _open(bare) if not name.startswith(SINGLE)}
    assert closed <= NOT_EVERYWHERE | RACES, bare
    assert len(bare) >= 140
    assert len(_open(bare)) >= 80


@pytest.mark.timeout(200)
def test_none_of_the_ways_out_is_open(tried: dict[str, dict[str, str]]) -> None:
    """Not one, for a user and for a root in the image."""
    found = {image: _open(said) for image, said in tried.items() if image != "bare"}
    assert len(found) == 2
    # Docker does not mask it; opening it for writing sets nothing but a trigger of the opener's own descriptor.
    harmless = {"setting /proc/pressure/cpu"}
    assert not any(set(one) - harmless for one in found.values()), found


# ---- folders of this machine -------------------------------------------------------------------------

TAMPER = (
    ONCE
    + """
import json, socket
told = {}
def tried(name, act):
    try:
        act()
        told[name] = "done"
    except OSError as error:
        told[name] = type(error).__name__
def write(path):
    with open(path, "a") as file:
        file.write("# changed")
def replace(path):
    with open(path + ".new", "w") as file:
        file.write("store: elsewhere")
    os.replace(path + ".new", path)
def hear(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as sock:
        sock.connect(path)
        sock.send(b"from inside")
tried("configuration: written", lambda: write("/shared/playhead.yaml"))
tried("configuration: replaced", lambda: replace("/shared/playhead.yaml"))
tried("configuration: removed", lambda: os.unlink("/shared/playhead.yaml"))
tried("configuration: moved", lambda: os.rename("/shared/playhead.yaml", "/shared/moved.yaml"))
tried("configuration: linked", lambda: os.link("/shared/playhead.yaml", "/shared/link.yaml"))
tried("store: its log written", lambda: write("/shared/deep/store/log.lmdb/data.mdb"))
tried("store: its key read", lambda: open("/shared/deep/store/private/receipt.key").close())
tried("store: moved", lambda: os.rename("/shared/deep/store", "/shared/deep/moved"))
tried("store: the folder above moved", lambda: os.rename("/shared/deep", "/shared/moved"))
tried("package: written", lambda: write("/playhead/__init__.py"))
tried("package: a module more", lambda: write("/playhead/timeline/more.py"))
tried("interpreter: written", lambda: write("/python/lib/more.py"))
tried("receipt: a link", lambda: os.symlink("/shared/victim", "/shared/receipt.json"))
tried("socket: before", lambda: hear("/shared/socket"))
open("/shared/ready", "w").close()
import time
while not os.path.exists("/shared/late"):
    time.sleep(0.05)
tried("socket: late", lambda: hear("/shared/late"))
tried("socket: late, datagram", lambda: hear("/shared/late", socket.SOCK_DGRAM))
open("/shared/own", "w").close()
print(json.dumps(told))
"""
)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder with a short path that holds a tape and a configuration, for a container to see."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        folder.chmod(0o777)
        (folder / "deep").mkdir()
        with Store.open(folder / "deep" / "store") as opened:
            record_run(opened, "tape", [ask()])
        (folder / "playhead.yaml").write_text("store: deep/store\n")
        yield folder


def test_a_folder_of_this_machine_leads_to_nothing_of_the_proxys(
    shared: Path, root_image: str
) -> None:
    """Store, configuration, package and receipt are what they were, and nobody outside hears anything."""
    heard: list[bytes] = []
    over = threading.Event()

    def listen(path: Path, late: Path | None) -> None:
        while late is not None and not late.exists() and not over.wait(0.01):
            pass
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
            sock.listen()
            sock.settimeout(0.05)
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.append(sock.accept()[0].recv(100))

    threads = [
        threading.Thread(target=listen, args=(shared / "socket", None)),
        threading.Thread(target=listen, args=(shared / "late", shared / "ready")),
    ]
    for thread in threads:
        thread.start()
    wait_until((shared / "socket").exists, 5, 0.02)
    package = Path(playhead_path[0])
    volumes = (f"{shared}:/shared", f"{package}:/playhead:ro", f"{sys.base_prefix}:/python:ro")
    flags = [word for volume in volumes for word in ("--volume", volume)]
    receipt = shared / "receipt.json"
    given = ("replay", "tape", "-c", shared / "playhead.yaml", "--receipt", receipt)
    try:
        done = playhead(
            *given,
            "--sandbox",
            "docker",
            "--image",
            root_image,
            *flags,
            "--",
            "python",
            "-c",
            TAMPER,
        )
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert {name for name, said in told.items() if said == "done"} <= {"receipt: a link"}, told
    assert len(told) >= 12
    assert heard == []
    assert (shared / "playhead.yaml").read_text() == "store: deep/store\n"
    assert not (shared / "victim").exists()
    assert playhead("verify", "--receipt", receipt, "-c", shared / "playhead.yaml").returncode == 0
    assert json.loads(receipt.read_text())["sandbox"]["sockets_watched"] is True


def test_a_folder_that_is_the_proxys_own_is_refused(shared: Path) -> None:
    """Before anything is run."""
    config = ("-c", str(shared / "playhead.yaml"))
    package = playhead_path[0]
    for volume in (
        f"{shared / 'deep' / 'store'}:/x:ro",
        f"{package}:/x",
        f"{shared}/playhead.yaml:/x",
    ):
        done = playhead(
            *("replay", "tape", *config, "--sandbox", "docker", "--image", IMAGE),
            *("--volume", volume, "--", "true"),
        )
        assert done.returncode == 125
        assert "--volume" in done.stderr
