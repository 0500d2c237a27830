"""Docker that does not do what it is asked for: one sentence each, and what to do."""

import os
from pathlib import Path

import pytest

from playhead.proxy.docker.docker_cli import Docker, explain
from playhead.proxy.errors import EngineError
from playhead.store import Store
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a tape."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    return tmp_path / "store"


def _fake(folder: Path, code: str) -> str:
    """Put a `docker` into a folder; give a PATH with that alone in front."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{code}\n")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _replay(store: Path, path: str, *flags: str) -> list[str]:
    given = ["replay", "tape", "--store", str(store), "--sandbox", "docker", *flags]
    done = playhead(*given, "--", "true", env={"PATH": path})
    assert (done.returncode, done.stdout) == (125, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


def test_without_dockers_command_line(store: Path, tmp_path: Path) -> None:
    """It is missing, not the engine."""
    (tmp_path / "empty").mkdir()
    lines = _replay(store, str(tmp_path / "empty"), "--image", "agent")
    assert lines[0] == "playhead: there is no `docker` in PATH, which --sandbox docker needs"
    assert lines[1] == (
        "  hint: install Docker, or run the command on this machine: leave out --sandbox docker and --image"
    )


def test_without_an_engine(store: Path, tmp_path: Path) -> None:
    """Docker says where it looked."""
    said = "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?"
    path = _fake(tmp_path, f"echo '{said}' >&2; exit 1")
    lines = _replay(store, path, "--image", "agent")
    assert lines[0] == f"playhead: no Docker engine answers: {said}"
    assert "DOCKER_HOST" in lines[1]


def test_without_an_image_named(store: Path) -> None:
    """There is none by default."""
    lines = _replay(store, os.environ["PATH"])
    assert "--sandbox docker needs --image" in lines[-1]


def test_docker_and_its_image_may_stand_in_the_configuration(store: Path, tmp_path: Path) -> None:
    """As every flag may; the flag wins."""
    path = _fake(tmp_path, 'echo "Error: No such image: $3" >&2; exit 1')
    file = tmp_path / "playhead.yaml"
    file.write_text("sandbox: {replay: docker, image: mine}\n")
    for flags, name in (((), "mine"), (("--image", "other"), "other")):
        given = ["replay", "tape", "--config", str(file), "--store", str(store), *flags]
        done = playhead(*given, "--", "true", env={"PATH": path})
        assert (done.returncode, done.stdout) == (125, "")
        assert f"there is no image '{name}' here" in done.stderr


def test_an_image_without_docker(store: Path) -> None:
    """It would mean nothing."""
    done = playhead("replay", "tape", "--store", store, "--image", "agent", "--", "true")
    assert done.returncode == 125
    assert "--image, --env and --volume go with --sandbox docker" in done.stderr


SAID = {
    "permission denied while trying to connect to the Docker daemon socket at unix:///x": (
        "may not speak to the Docker engine",
        "group `docker`",
    ),
    "error during connect: no such host": ("no Docker engine answers", "DOCKER_HOST"),
    "Error response from daemon: Conflict.\n": (
        "`docker run` failed: Error response from daemon: Conflict.",
        "by hand",
    ),
    "": ("`docker run` failed: it printed nothing", "by hand"),
}


@pytest.mark.parametrize("said", SAID)
def test_what_docker_says_becomes_a_sentence(said: str) -> None:
    """With its last line where we know no better."""
    error = explain("run", said)
    assert SAID[said][0] in str(error)
    assert SAID[said][1] in str(error.hint)


def test_an_image_is_told_from_an_engine_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint is the caller's."""
    monkeypatch.setenv("PATH", _fake(tmp_path, "echo 'Error: No such image: agent' >&2; exit 1"))
    with pytest.raises(EngineError, match="there is no image 'agent' here") as told:
        Docker().find_image("agent", "build it")
    assert told.value.hint == "build it"
