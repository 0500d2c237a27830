"""What is hidden from a command, by its variables and by where it works."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem import socket_reachability
from playhead.proxy.sandbox.filesystem.masking import ARCHIVED, Plan, make_plan
from playhead.proxy.sandbox.filesystem.socket_reachability import find_reachable
from playhead.proxy.sandbox.preflight import explain, find_switch, require_system


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place to work in, with a socket of a program outside."""
    (tmp_path / "work").mkdir()
    (tmp_path / "agent").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent" / "socket"))
        agent.listen()
        yield tmp_path


def plan(folder: Path, **environ: str) -> Plan:
    """The plan for a command with these variables, of which HOME is elsewhere."""
    given = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), **environ}
    roots, store = folder / "roots.pem", folder / "store"
    return make_plan(given, "sh", bundle=roots, store=store, public=store / "ca")


def test_the_runtime_folder_is_empty_and_there(folder: Path) -> None:
    """Programs that write to it find it; what was in it is gone."""
    agent = str(folder / "agent")
    made = plan(folder, XDG_RUNTIME_DIR=agent)
    assert agent in made.hidden
    made = plan(folder, XDG_RUNTIME_DIR="/run")
    assert "/run" in made.hidden
    assert f"{agent}/socket" in made.masked
    assert f"{agent}/socket" not in find_reachable(made.hidden, made.masked)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SSH_AUTH_SOCK", "{}"),
        ("GPG_AGENT_INFO", "{}:1:1"),
        ("TMUX", "{},1234,0"),
        ("VSCODE_IPC_HOOK_CLI", "{}"),
        ("KITTY_LISTEN_ON", "unix:{}"),
        ("DOCKER_HOST", "unix://{}"),
        ("CONTAINER_HOST", "unix://{}"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=x;unix:path={},guid=1"),
    ],
)
def test_sockets_that_variables_name_are_nothing(folder: Path, variable: str, value: str) -> None:
    """One by one, wherever they are, and whoever listens there."""
    path = str(folder / "agent" / "other")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
    made = plan(folder, **{variable: value.format(path)})
    assert path in made.masked
    assert path not in plan(folder, **{variable: "tcp://127.0.0.1:2375"}).masked


def test_a_socket_that_a_live_rule_names_stays(folder: Path) -> None:
    """By its path, also in a folder that is hidden."""
    path = str(folder / "agent" / "socket")
    roots, store = folder / "roots.pem", folder / "store"
    given = {"HOME": str(folder / "home"), "XDG_RUNTIME_DIR": str(folder / "agent")}
    made = make_plan(
        given, "sh", bundle=roots, store=store, public=store / "ca", let_in=[path, "/run/none"]
    )
    assert made.let_in == (path, "/run/none")
    assert path not in made.masked
    assert str(folder / "agent") in made.hidden


@pytest.mark.parametrize("needed", ["work", "home", "tmp", "bin"])
def test_a_folder_that_is_needed_stays(folder: Path, needed: str) -> None:
    """The working folder, home, temporary files and programs: then the sockets in it are hidden one by one."""
    place = folder / needed
    place.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(place / "socket"))
        made = plan(folder, XDG_RUNTIME_DIR=str(place), PATH=f"/usr/bin:{folder / 'bin'}")
        assert str(place) not in made.hidden
        assert str(place / "socket") in made.masked


@pytest.mark.parametrize(
    ("archive", "hidden"),
    [
        ("archive", ["archive"]),
        ("work/archive", ["work/archive"]),
        ("nowhere", []),
        # the command works there, or in it
        ("work", [f"work/{name}" for name in ARCHIVED]),
        (".", list(ARCHIVED)),
    ],
)
def test_archives_are_hidden(folder: Path, archive: str, hidden: list[str]) -> None:
    """What was recorded is no more a command's to change there than in the store."""
    if archive != "nowhere":
        for name in ARCHIVED:
            (folder / archive / name).mkdir(parents=True)
    roots, store = folder / "roots.pem", folder / "store"
    given = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    for path in given.values():
        Path(path).mkdir()
    archives = [folder / archive]
    made = make_plan(given, "sh", bundle=roots, store=store, public=store / "ca", archives=archives)
    found = {path for path in made.hidden if path.startswith(str(folder))}
    assert found == {str(folder / path) for path in hidden}


def test_the_folders_of_an_archive_are_those_of_its_format() -> None:
    """They are listed beside what hides them: the format itself needs pyarrow."""
    schema = pytest.importorskip("playhead.store.archive.schema")
    assert set(ARCHIVED) == set(schema.SCHEMAS)


def test_the_store_is_hidden_but_for_the_certificate(folder: Path) -> None:
    """A tape that a command can write to proves nothing; the key of the CA is nobody's."""
    for name in ("ca", "private", "log.lmdb", "bodies", "else"):
        (folder / "store" / name).mkdir(parents=True)
    made = plan(folder)
    assert str(folder / "store") in made.hidden
    assert made.shown == (str(folder / "store" / "ca"),)
    # Whoever works in a store, or keeps other things there, sees those.
    made = plan(folder, HOME=str(folder / "store" / "else"))
    hidden = {f"{folder}/store/{name}" for name in ("private", "log.lmdb", "bodies")}
    assert hidden <= set(made.hidden)
    assert str(folder / "store") not in made.hidden


def test_sockets_of_a_home_are_nothing(folder: Path) -> None:
    """SSH's open connections, Docker's desktop: whoever has them reaches other machines."""
    places = (".ssh/agent", ".docker/run", ".colima/default", ".gnupg")
    with contextlib.ExitStack() as stack:
        for place in places:
            (folder / "home" / place).mkdir(parents=True)
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.bind(str(folder / "home" / place / "socket"))
        made = plan(folder)
    assert {str(folder / "home" / place / "socket") for place in places} <= set(made.masked)


def test_the_resolver_is_ours(folder: Path) -> None:
    """And so is the list of hosts."""
    files = plan(folder).files
    assert "nameserver 127.0.0.53" in files[str(Path("/etc/resolv.conf").resolve())]
    assert "127.0.0.1 localhost" in files["/etc/hosts"]


def test_sockets_are_found_where_the_kernel_cannot_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its older table, by their first name."""

    def refuse() -> None:
        raise FileNotFoundError

    monkeypatch.setattr(socket_reachability, "list_listening", refuse)
    assert find_reachable((), ()).count(str(folder / "agent" / "socket")) == 1


@pytest.mark.parametrize("moved", [False, True])
def test_a_socket_within_reach_is_told_wherever_it_is_now(folder: Path, moved: bool) -> None:
    """Bound by a name in a folder, and moved since, as OpenSSH does with those of open connections."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind("bound")
        agent.listen()
        expected = folder / "work" / "bound"
        if moved:
            expected = folder / "work" / "now"
            os.link("bound", expected)
            os.unlink("bound")
        found = set(find_reachable((), ()))
        assert str(expected) in found
        assert (str(folder / "work" / "bound") in found) is not moved
    assert str(expected) not in find_reachable((), ())


# ---- why there can be none -------------------------------------------------------------------------

SWITCHES = {
    "proc/sys/kernel/unprivileged_userns_clone": ("0", "1"),
    "proc/sys/user/max_user_namespaces": ("0", "1000"),
    "proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
}


@pytest.mark.parametrize("file", SWITCHES)
def test_the_setting_that_forbids_it_is_named(tmp_path: Path, file: str) -> None:
    """With the command that changes it; where it allows them, it is not the reason."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    off, on = SWITCHES[file]
    path.write_text(f"{off}\n")
    found = find_switch(tmp_path)
    assert found is not None
    assert found[0] == f"/{file}"
    assert found[1].startswith(f"sysctl {path.parent.name}.{path.name}=")
    path.write_text(f"{on}\n")
    assert find_switch(tmp_path) is None


@pytest.mark.parametrize(
    ("system", "machine", "says"),
    [("darwin", "arm64", "it needs Linux"), ("linux", "riscv64", "system calls of riscv64")],
)
def test_a_system_that_has_none_is_told(system: str, machine: str, says: str) -> None:
    """With the ways that are left."""
    with pytest.raises(EngineError, match=says) as caught:
        require_system(system, machine)
    assert caught.value.hint.startswith("run in Docker")
    assert "--no-sandbox" in caught.value.hint


def test_other_reasons_are_told_as_they_are() -> None:
    """Each with the ways that there are."""
    for step, number in (("the sandbox", 1), ("the network", 98)):
        error = explain(step, number, "mount on /proc: Operation not permitted")
        assert "mount on /proc: Operation not permitted" in str(error)
        assert "--no-sandbox" in error.hint
        assert "Docker" in error.hint
