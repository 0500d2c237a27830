"""A disk that fills while an agent works: as `on_full` says, the store stays readable, and recording goes on by itself."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from playhead.store import Store
from playhead.tape.records.events import EventKind
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead
from playhead.timeline import build, render_receipt

_SCRIPT = """
mount -t tmpfs -o size=$SIZE none "$1" || exit 77
{commands}
code=$?
cp -r "$1/." "$2"
exit $code
"""
_PLAYHEAD = f"{shlex.quote(sys.executable)} -m playhead.proxy.cli"
_AGENT = f"{shlex.quote(sys.executable)} -m playhead.tests.support.full_disk"


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="ok")


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin({"/x": _answer}) as made:
        yield made


class Done:
    """What came of commands on a disk of their own."""

    def __init__(self, folder: Path, commands: str, size: str = "8m") -> None:
        """Run them; `$1` is the store on the small disk, `$3` a folder elsewhere.

        Skips where there are no mount namespaces.
        """
        need("private mounts")
        small, self.store = folder / "small", folder / "copy"
        for made in (small, self.store):
            made.mkdir()
        script = _SCRIPT.format(commands=commands)
        inside = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh"]
        self.run = subprocess.run(
            [*inside, str(small), str(self.store), str(folder)],
            env={**os.environ, "SIZE": size},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in self.run.stderr, self.run.stderr

    @property
    def told(self) -> dict[str, Any]:
        """What the agent said last."""
        assert self.run.stdout, self.run.stderr
        found: dict[str, Any] = json.loads(self.run.stdout.splitlines()[-1])
        return found


def _recording(origin: Origin, on_full: str) -> str:
    return (
        f'echo "on_full: {on_full}" > "$3/c.yaml"\n'
        f'{_PLAYHEAD} record -c "$3/c.yaml" --store "$1" --run r --'
        f' {_AGENT} agent {origin.url}/x "$1" {on_full}'
    )


def test_a_full_disk_refuses_until_there_is_room(tmp_path: Path, origin: Origin) -> None:
    """`stop`: the origin sees nothing unrecorded, the store stays readable, recording goes on, and the gap is told."""
    done = Done(tmp_path, _recording(origin, "stop"))
    told = done.told
    assert told["before"] == [200, 200]
    assert told["refused"]
    assert told["full"] == [424, 424]
    assert told["shown"] >= 2
    assert told["again"]
    assert told["after"] == [200]
    assert done.run.returncode == 2
    told_once, *rest = [
        line for line in done.run.stderr.splitlines() if line.startswith("playhead: cannot write")
    ]
    assert not rest
    assert "free space or make the folder writable" in told_once
    assert "hook" not in done.run.stderr
    assert "the recording is not whole: free space where the store is" in done.run.stderr
    assert "ok, gap" in playhead("runs", "--store", done.store).stdout
    with Store.open(done.store, readonly=True) as store:
        info = store.runs.get("r")
        receipt = build(store, info)
        # What the origin was asked for after the disk was full is all there.
        assert len(store.exchanges.seqs(info)) >= 4
        assert store.events.find_broken_link(info) is None
    (gap,) = receipt.gaps
    assert gap.until_ns is not None
    assert gap.until_ns > gap.since_ns
    assert gap.records
    assert gap.effects == 0
    assert "GAP at" in render_receipt(receipt)


def test_a_full_disk_lets_requests_pass_with_a_gap(tmp_path: Path, origin: Origin) -> None:
    """`pass`: the agent notices nothing; the receipt says how many exchanges and unlogged effects are missing."""
    done = Done(tmp_path, _recording(origin, "pass"))
    told = done.told
    assert (told["before"], told["full"], told["after"]) == ([200, 200], [200, 200], [200])
    assert told["again"]
    assert done.run.returncode == 0
    with Store.open(done.store, readonly=True) as store:
        info = store.runs.get("r")
        receipt = build(store, info)
        kept = len(store.exchanges.seqs(info))
        asked = max(store.exchanges.seqs(info))
        kinds = [event.kind for event in store.events.read(info)]
        assert store.events.find_broken_link(info) is None
    assert kinds[-1] is EventKind.SEALED
    (gap,) = receipt.gaps
    assert gap.exchanges == asked - kept
    assert gap.effects == 1
    row = receipt.to_json()["gaps"][0]
    assert (row["exchanges"], row["effects"]) == (gap.exchanges, 1)
    assert "1 effects were sent on unlogged" in render_receipt(receipt)


def test_a_playback_goes_on_where_the_disk_is_full(tmp_path: Path, origin: Origin) -> None:
    """What the tape has is served; verdicts that were not written are a gap, and it is not called faithful."""
    commands = (
        f'echo "reads: [{{match: {origin.url}/x, repeat: last}}]" > "$3/c.yaml"\n'
        f'{_PLAYHEAD} record --quiet --store "$1" --run r -- {_AGENT} poller {origin.url}/x\n'
        f'{_PLAYHEAD} replay --no-sandbox -c "$3/c.yaml" --store "$1" r --'
        f' {_AGENT} player {origin.url}/x "$1"'
    )
    done = Done(tmp_path, commands)
    assert done.told == {"seen": [200]}
    assert done.run.returncode == 125, done.run.stderr
    with Store.open(done.store, readonly=True) as store:
        receipt = build(store, store.runs.get("r@1"))
    assert receipt.gaps
    assert receipt.faithful is False
    assert "GAP at" in done.run.stderr


_FILL = 'cat /dev/zero > "$1/filler" 2>/dev/null; truncate -s -{free}K "$1/filler"'


@pytest.mark.parametrize("free", [300, 800])
def test_what_a_full_disk_took_from_a_log_is_not_denied(
    tmp_path: Path, origin: Origin, free: int
) -> None:
    """A replay that starts there may begin, and serves its tape; its receipt and its effects claim only what is outside of the gap."""
    player = f'--store "$1" r -- {_AGENT} poller {origin.url}/x'
    commands = (
        f'{_PLAYHEAD} record --quiet --store "$1" --run r -- {_AGENT} poller {origin.url}/x\n'
        f"{_FILL.format(free=free)}\n"
        f"{_PLAYHEAD} replay --no-sandbox --in-place {player}\n"
        f'code=$?; rm "$1/filler"\n'
        f'for verb in effects "rewind --before-effect"; do {_PLAYHEAD} $verb --store "$1" r@1 >&2; done; (exit $code)'
    )
    done = Done(tmp_path, commands)
    said = done.run.stderr
    assert (done.run.returncode, done.told) == (125, {"seen": [200, 200]}), said
    assert "outside of the gap: served 0" in said
    assert "left on the tape, never asked for, or in the gap:" in said
    assert "  no effects outside of the gap" in said
    assert "it has no effects outside of the gap" in said
    assert said.count("GAP at") == 3


def test_a_ballast_makes_room_to_delete(tmp_path: Path) -> None:
    """On a disk that is full to the last byte `gc` deletes; the ballast is back once there is room."""
    done = Done(tmp_path, f'{_AGENT} delete "$1"', size="6m")
    assert done.told == {
        "stood": 1 << 20,
        "without": "refused",
        "gone": 5,
        "left": 0,
        "back": 1 << 20,
    }
