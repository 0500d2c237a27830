"""A gRPC client that waits for each answer before it says more is refused what is not on the tape, and does not wait for ever."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.grpc_server import GrpcOrigin
from playhead.tests.support.process import COMMAND

IMPORTS = ("grpc.experimental", "grpc._channel")
CLIENT = """
import queue, sys, grpc
port, tenant, *words = sys.argv[1:]
said = queue.Queue()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
call = channel.stream_stream("/test.Test/Bidi")(iter(said.get, None), metadata=[("x-tenant", tenant)])
try:
    for word in words:
        said.put(word.encode())
        next(call)
    said.put(None)
    list(call)
except grpc.RpcError as error:
    print(error.code().name)
    sys.exit(3)
"""
CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "another tenant": (("b", "one", "two"), "header x-tenant"),
    "another first word": (("a", "ONE", "two"), "body"),
    "another second word": (("a", "one", "TWO"), "body"),
}
"""What the client says otherwise, and the place that is named."""


@pytest.fixture(scope="module")
def tape(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> tuple[Path, Path, int]:
    """A store with the recording, the client's program, and the port of a server that is gone."""
    folder = tmp_path_factory.mktemp("lockstep")
    program = folder / "client.py"
    program.write_text(CLIENT)
    with GrpcOrigin(certificates) as origin:
        port = origin.ports["plain"]
        words = ("record", "-q", "--run", "r", "--store", str(folder / "store"), "--")
        done = _run(folder, *words, str(sys.executable), str(program), str(port), "a", "one", "two")
        assert done.returncode == 0, done.stderr
    return folder, program, port


def _run(folder: Path, *words: str) -> Any:
    return prepared.run([*COMMAND, *words], imports=IMPORTS, text=True, timeout=60, cwd=folder)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_call_is_refused_while_its_client_waits(
    tape: tuple[Path, Path, int], change: str
) -> None:
    """It ends with the status of a refusal, and the receipt names what changed."""
    folder, program, port = tape
    given, place = CHANGES[change]
    receipt = folder / f"{change}.json".replace(" ", "-")
    words = ("replay", "--no-sandbox", "--store", str(folder / "store"), "--receipt", str(receipt))
    done = _run(folder, *words, "r", "--", sys.executable, str(program), str(port), *given)
    assert done.returncode == 121, done.stderr
    told = json.loads(receipt.read_text())
    assert told["child_exit"] == 3
    first = told["divergences"][0]
    assert (first["kind"], first["nearest_seq"]) == ("changed", 1)
    assert first["differences"][0]["place"].startswith(place)


def test_an_unchanged_call_is_faithful(tape: tuple[Path, Path, int]) -> None:
    """It is answered message by message."""
    folder, program, port = tape
    words = ("replay", "--no-sandbox", "--store", str(folder / "store"), "r", "--")
    done = _run(folder, *words, sys.executable, str(program), str(port), "a", "one", "two")
    assert done.returncode == 0, done.stderr
