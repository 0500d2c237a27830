"""The image of this repository: small, not root, content with nothing."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from playhead import __version__
from playhead.tests.support.docker import IMAGE, docker
from playhead.tests.support.process import wait_until

HARD = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
CONFIG = '{"runs": {"tokens": {"*": "a-long-token-for-this-test"}}}'


@pytest.fixture(scope="module")
def told() -> Any:
    """What the engine knows of the image."""
    return json.loads(docker("image", "inspect", IMAGE).stdout)[0]


def test_the_image_has_at_most_300_mb(told: Any) -> None:
    """All layers together, unpacked."""
    assert told["Size"] <= 300_000_000


def test_the_image_says_what_it_is(told: Any) -> None:
    """By the labels that registries read; its version is the package's."""
    labels, name = told["Config"]["Labels"], "org.opencontainers.image"
    assert labels[f"{name}.title"] == "Playhead"
    assert labels[f"{name}.version"] == __version__
    assert {f"{name}.description", f"{name}.licenses"} <= labels.keys()


def test_nobody_in_the_image_is_root(told: Any) -> None:
    """By number, which a cluster can check."""
    assert told["Config"]["User"] == "10001:10001"
    assert docker("run", "--rm", "--entrypoint", "id", IMAGE, "-u").stdout.strip() == "10001"


def test_no_key_and_no_store_is_in_the_image() -> None:
    """A key that everybody has would let everybody read everything."""
    found = docker(
        *("run", "--rm", "--user", "0", "--entrypoint", "find", IMAGE, "/data", "/ca", "/link"),
        *("/agent", "/opt/playhead", "-name", "*.lmdb", "-o", "-name", "*key*.pem"),
        *("-o", "-name", "*-ca.pem", "-o", "-path", "/data/*"),
    )
    assert found.stdout == ""


@pytest.fixture
def serving(tmp_path: Any) -> Iterator[str]:
    """The default command in a container that has no rights and writes to its volumes alone."""
    config = tmp_path / "playhead.yaml"
    config.write_text(CONFIG)
    config.chmod(0o644)
    name = f"playhead-test-{uuid.uuid4().hex[:8]}"
    mount = f"{config}:/etc/playhead/playhead.yaml:ro"
    docker("run", "--detach", "--name", name, *HARD, "--tmpfs", "/tmp", "--volume", mount, IMAGE)
    yield name
    docker("rm", "--force", "--volumes", name)


def test_the_default_command_needs_no_rights(serving: str) -> None:
    """Read-only, without capabilities or new privileges; its health check says so."""

    def health() -> str:
        state = json.loads(docker("inspect", "--format", "{{json .State}}", serving).stdout)
        assert state["Running"], docker("logs", serving, check=False).stderr
        return str(state["Health"]["Status"])

    wait_until(lambda: health() == "healthy", 25, 0.2)
    status = docker("exec", serving, "cat", "/proc/1/status").stdout
    rows = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert int(rows["CapEff"], 16) == int(rows["CapBnd"], 16) == 0
    assert (rows["NoNewPrivs"], rows["Seccomp"]) == ("1", "2")
    assert docker("exec", serving, "touch", "/opt/playhead/x", check=False).returncode != 0
