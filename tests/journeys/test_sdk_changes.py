"""Real clients whose requests differ in a place that only they know: an unchanged replay is green and equal, a changed one red.

`playhead record`, then the server is gone, then `playhead replay`: three times as it was, and once with each change. What
the client says (hashes of what it got) is that of the recording in each unchanged replay.

Every day one client without a change and with one; all with PLAYHEAD_FULL, after `just sdks`.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.certificates import Certificates
from playhead.tests.support.cloud_host import CloudHost
from playhead.tests.support.counts import FULL
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Handler, Origin
from playhead.tests.support.process import playhead
from playhead.tests.support.sdk_host import serve_repository
from playhead.tests.support.sdks import find_python

SCRIPTS = Path(__file__).parent / "clients"
REPLAYS = 3 if FULL else 1


@dataclass(frozen=True)
class Client:
    """A client of a cloud."""

    package: str
    """By which an interpreter is found; empty: it is git."""
    requests: int
    """How many it makes."""
    changes: dict[str, str]
    """The kind of the root divergence and its place, by change."""
    ours: bool = False
    """Whether it is in the development environment, too."""


CLIENTS = {
    "azure_download": Client("azure/storage/blob", 16, {"range": "changed: header x-ms-range"}),
    "azure_upload": Client(
        "azure/storage/blob",
        10,
        {
            "block": "changed: body",
            "metadata": "changed: header x-ms-meta-case",
            "overwrite": "changed: header if-none-match",
        },
    ),
    "storage": Client(
        "google/cloud/storage",
        5,
        {
            "range": "changed: header range",
            "piece": "changed: body",
            "name": "changed: body $.name",
            "precondition": "changed: query ifGenerationMatch",
            "project": "changed: header x-goog-user-project",
        },
    ),
    "s3": Client(
        "boto3",
        5,
        {
            "source": "changed: header x-amz-copy-source",
            "range": "changed: header range",
            "owner": "changed: header x-amz-expected-bucket-owner",
            "condition": "changed: header if-match",
        },
        ours=True,
    ),
    "stripe": Client(
        "stripe",
        3,
        {
            "account": "changed: header stripe-account",
            "platform": "changed: header stripe-account",
            "tenant": "changed: header stripe-account",
            "version": "changed: header stripe-version",
        },
        ours=True,
    ),
    "anthropic": Client(
        "anthropic",
        3,
        {
            "beta": "changed: header anthropic-beta",
            "added": "changed: header anthropic-beta",
            "version": "changed: header anthropic-version",
        },
        ours=True,
    ),
    "git": Client(
        "",
        8,
        {
            "branch": "changed: body",
            "ref": "changed: body",
            "content": "changed: body",
            "pushed": "changed: body",
        },
    ),
}
DAILY = {"s3": "source"}


@dataclass(frozen=True)
class Launcher:
    """Records and replays a client in a store of its own, outside the sandbox, which is not under test here."""

    folder: Path
    flags: tuple[str, ...]
    command: tuple[str, ...]

    def __call__(self, *words: str, change: str = "") -> tuple[str, dict[str, Any], str]:
        """Give what the client said, the receipt, and what was said of it."""
        file = self.folder / "receipt.json"
        flags = (*self.flags, "--receipt", str(file))
        if words[0] == "replay":
            flags += ("--no-sandbox",)
        agent = (*self.command, *([change] if change else []))
        done = playhead(words[0], *flags, *words[1:], "--", *agent, cwd=self.folder)
        return done.stdout, json.loads(file.read_text()), done.stderr


@pytest.fixture(scope="module", params=CLIENTS if FULL else DAILY)
def recorded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    certificates: Certificates,
) -> tuple[str, Launcher, str]:
    """Have the recording of a client, whose server is gone; give its name and what it said."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    client = CLIENTS[name]
    if client.package:
        python = find_python(client.package, ours=client.ours)
        command: tuple[str, ...] = (python, "-W", "ignore", str(SCRIPTS / "sdk_clouds.py"), name)
    else:
        command = (need("sh", "git"), str(SCRIPTS / "git_work.sh"))
    work = folder / "work"
    work.mkdir()
    with _server(client, certificates, folder) as origin:
        flags = ("--store", str(folder / "store"), "--upstream-ca", str(certificates.root))
        launcher = Launcher(work, flags, (*command, origin.url))
        said, receipt, err = launcher("record", "--run", "tape")
        assert receipt["child_exit"] == 0, err
        assert receipt["requests"] >= client.requests, err
        assert len(origin.requests) == receipt["requests"]
    return name, launcher, said


@contextlib.contextmanager
def _server(client: Client, certificates: Certificates, folder: Path) -> Iterator[Origin]:
    routes: dict[str, Handler] = {"/{path:.*}": CloudHost().answer}
    if not client.package:
        routes = {"/some.git/{path:.*}": serve_repository(_repository(folder))}
    with Origin(routes, certificates) as origin:
        yield origin


def _repository(folder: Path) -> Path:
    """Make a repository with three branches."""
    place = folder / "repository"
    place.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=place, check=True)
    for branch in ("main", "feature", "other"):
        if branch != "main":
            subprocess.run(["git", "checkout", "-q", "-b", branch, "main"], cwd=place, check=True)
        (place / f"{branch}.txt").write_text(f"{branch}\n" * 100)
        for words in (("add", "."), (*who, "commit", "-q", "-m", branch)):
            subprocess.run(["git", *words], cwd=place, check=True)
    return place


@pytest.mark.timeout(300)
def test_an_unchanged_replay_is_green_and_equal(recorded: tuple[str, Launcher, str]) -> None:
    """Each time: what the client got and said is what it had got; nothing was missing, nothing left over."""
    name, launcher, said = recorded
    for _ in range(REPLAYS):
        replayed, receipt, err = launcher("replay", "tape")
        assert receipt["faithful"] is True, (err, receipt["divergences"])
        assert replayed == said
        assert receipt["exit_code"] == 0
        assert not receipt["egress"]
        assert receipt["counts"]["served"] == receipt["requests"] >= CLIENTS[name].requests


@pytest.mark.timeout(300)
def test_a_planted_change_is_red_with_its_cause(recorded: tuple[str, Launcher, str]) -> None:
    """The root divergence names the place in which the request differs."""
    name, launcher, _ = recorded
    changes = CLIENTS[name].changes
    for change in changes if FULL else [DAILY[name]]:
        _, receipt, err = launcher("replay", "tape", change=change)
        kind, _, place = changes[change].partition(": ")
        root = receipt["root"]
        assert receipt["faithful"] is False, (change, err)
        assert receipt["exit_code"] == 121, (change, err)
        assert root["kind"] == kind, (change, err)
        places = [one["place"] for one in root["differences"]]
        assert any(one == place or one.startswith(f"{place} ") for one in places), (change, err)
