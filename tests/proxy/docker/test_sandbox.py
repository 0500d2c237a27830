"""What `--sandbox docker` asks of Docker's command line, and what a container sees of this machine."""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.docker import sandbox
from playhead.proxy.docker.container_spec import agent_flags, asked_variables, variable_flags
from playhead.proxy.docker.sandbox import DockerPlace, DockerSandbox, Wanted
from playhead.proxy.docker.volumes import Depended, bind, find_reached, guard, mount_flag
from playhead.proxy.errors import EngineError
from playhead.proxy.trust.ca import BUNDLE_FILE, CERTIFICATE_FILE


def test_a_key_that_is_asked_for_by_name_is_in_no_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Everybody on a machine may read the words that a process was started with; Docker reads it where we do."""
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.delenv("OTHER", raising=False)
    asked = asked_variables(("API_KEY", "PLAIN=text", "OTHER"))
    flags = variable_flags(asked, {"API_KEY": "secret"}, tmp_path / "file")
    assert flags == ["--env-file", str(tmp_path / "file"), "--env", "API_KEY"]
    assert (tmp_path / "file").read_text() == "PLAIN=text\n"
    variable_flags({"API_KEY": "ours"}, {"API_KEY": "theirs"}, tmp_path / "other")
    assert (tmp_path / "other").read_text() == "API_KEY=ours\n"
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "row",
    ["A=two\nlines", "A=cr\r", "#A=1", "A B=1", "A=\udcff", "A=" + "x" * 70_000, "Http_Proxy=x"],
)
def test_what_dockers_file_of_variables_cannot_hold_is_a_word(tmp_path: Path, row: str) -> None:
    """It would be cut, taken as a remark, refused, or lose against a setting of Docker's."""
    name, _, value = row.partition("=")
    flags = variable_flags({name: value, "B": " b # 'c' "}, {}, tmp_path / "file")
    assert flags[2:] == ["--env", row]
    assert (tmp_path / "file").read_text() == "B= b # 'c' \n"


_FAKE = """#!/bin/sh
[ "$1" = image ] && echo '[{"Id": "sha256:1", "Config": {"Env": ["PATH=/bin"]}}]'
[ "$1" = cp ] && echo found
[ "$1" = create ] || exit 0
printf '%s\\n' "$@" >"$SEEN/words"
while [ "$1" != --env-file ]; do shift; done
cat "$2" >"$SEEN/file"
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerSandbox]:
    """A box whose `docker` writes down what it was asked for."""
    monkeypatch.setenv("SEEN", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "docker").write_text(_FAKE)
    (tmp_path / "docker").chmod(0o755)
    for name in (BUNDLE_FILE, CERTIFICATE_FILE):
        (tmp_path / name).touch()
    wanted = Wanted("agent", ("PLAYHEAD_SEED=secret",))
    opened = DockerSandbox(
        wanted, ["agent"], url="http://127.0.0.1:1023", public=tmp_path, preload_bundle=None
    )
    yield opened
    opened.close()


def test_a_seed_is_in_no_command(
    made: DockerSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in a file afterwards: Docker has read it."""
    monkeypatch.setattr(sandbox, "agent_variables", lambda image, given, **_: given)
    made._create()
    assert "secret" not in (tmp_path / "words").read_text()
    assert "PLAYHEAD_SEED=secret" in (tmp_path / "file").read_text().splitlines()
    assert not (made._folder / "environment").exists()


def test_the_search_domain_of_the_machine_reaches_no_container(made: DockerSandbox) -> None:
    """Names would be asked for with it."""
    words = made._network_words()
    assert words[words.index("--dns-search") + 1] == "."


def test_the_archive_is_empty_in_a_folder_that_is_mounted(
    made: DockerSandbox, tmp_path: Path
) -> None:
    """As the store is; a folder that is none is not made on the machine, and the archive itself is no volume."""
    folder = tmp_path.resolve()
    config = Config(store=folder / "store", ca_dir=folder)
    archives = [folder / "there", folder / "missing"]
    archives[0].mkdir()

    def guarded(volume: str) -> list[str]:
        docker = DockerPlace(Wanted("agent", volumes=(volume,)))
        place = docker.place(config, ["agent"], None, "http://127.0.0.1:1", (), archives)
        return place.make_sandbox([])._volumes

    words = guarded(f"{folder}:/data")
    assert mount_flag("type=tmpfs", "target=/data/there")[1] in words
    assert "/data/missing" not in " ".join(words)
    with pytest.raises(EngineError, match="is the archive, or in it"):
        guarded(f"{folder}/there:/data")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, in which somebody listens."""
    with tempfile.TemporaryDirectory() as made, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{made}/service")
        listening.listen()
        yield Path(made).resolve()


def test_a_socket_in_a_folder_that_is_mounted_is_nothing(folder: Path) -> None:
    """And there are no others: Docker lets nobody look at what is connected to. A live rule lets one in."""
    path = f"{folder}/service"
    assert guard([f"{folder}:/there:ro"], Depended()) == bind(
        "/dev/null", "/there/service", writable=True
    )
    assert guard([f"{folder}:/there"], Depended(let_in=(path,))) == []
    assert guard([f"{folder}x:/there", "name:/there", str(folder)], Depended()) == []
    with pytest.raises(EngineError, match="is a socket of an outside program") as caught:
        guard([f"{path}:/there"], Depended())
    assert f"unix://{path}" in caught.value.hint
    assert find_reached([f"{folder}:/there"]) == [path]
    os.mkfifo(folder / "pipe")
    reading = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        words = guard([f"{folder}:/there"], Depended(let_in=(path,)))
        assert words == bind("/dev/null", "/there/pipe", writable=True)
    finally:
        os.close(reading)
    (folder / "pipe").unlink()
    assert find_reached([f"{folder}:/there"], [path]) == []


def test_what_the_proxy_depends_on_is_not_the_agents_in_a_volume(tmp_path: Path) -> None:
    """The store is empty, the configuration can be read only, and no folder above them can be renamed."""
    work = tmp_path.resolve() / "work"
    store, file = work / "deep" / "store", work / "playhead.yaml"
    store.mkdir(parents=True)
    file.touch()
    depended = Depended(hidden=(str(store),), locked=(str(file),))
    words = guard([f"{work}:/agent"], depended)
    assert words == [
        *mount_flag("type=tmpfs", "target=/agent/deep/store"),
        *bind(str(file), "/agent/playhead.yaml"),
        *bind(str(work / "deep"), "/agent/deep", writable=True),
    ]
    for volume in (store, store / "private"):
        with pytest.raises(EngineError, match="is the store, or in it"):
            guard([f"{volume}:/agent"], depended)
    with pytest.raises(EngineError, match="is a folder of Playhead or its configuration"):
        guard([f"{file}:/agent/playhead.yaml"], depended)
    assert guard([f"{file}:/agent/playhead.yaml:ro"], depended) == []


def test_an_agent_with_volumes_has_no_path_sockets(made: DockerSandbox) -> None:
    """Without it has; nothing outside can be reached by one."""
    assert any(word.endswith("seccomp.json") for word in agent_flags("network"))
    assert any(
        word.endswith("seccomp-strict.json") for word in agent_flags("network", sockets=False)
    )
    assert made.sockets.watched
