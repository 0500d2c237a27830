"""What `--sandbox docker` asks of Docker's command line, and what a container sees of this machine."""

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.docker.box import InImage, Wanted
from playhead.proxy.docker.image import asked_variables, variable_flags


def test_a_key_that_is_asked_for_by_name_is_in_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on a machine may read the words that a process was started with; Docker reads it where we do."""
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.delenv("OTHER", raising=False)
    asked = asked_variables(("API_KEY", "PLAIN=text", "OTHER"))
    flags = variable_flags(asked, {"API_KEY": "secret"})
    assert flags == ["--env", "API_KEY", "--env", "PLAIN=text"]
    assert variable_flags({"API_KEY": "ours"}, {"API_KEY": "theirs"}) == ["--env", "API_KEY=ours"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, in which somebody listens."""
    with tempfile.TemporaryDirectory() as made, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{made}/service")
        listening.listen()
        yield Path(made).resolve()


@pytest.mark.parametrize("within", ["", "/service"])
def test_a_socket_in_a_folder_that_is_mounted_is_told(folder: Path, within: str) -> None:
    """The container has a way out there; in a volume of Docker's own nobody here listens."""

    def reached(*volumes: str) -> list[str]:
        place = InImage(Wanted("agent", volumes=volumes)).place(Config(), ["agent"], None, "")
        return list(place.reached())

    assert reached(f"{folder}{within}:/there:ro") == [f"{folder}/service"]
    assert reached(f"{folder}x:/there", "name:/there", str(folder)) == []
    assert reached() == []
