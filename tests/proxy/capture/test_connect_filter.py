"""The filter: `connect` and rings are reported, everything else is allowed, on both machines."""

import errno
import platform
import struct

import pytest

from playhead.proxy.capture import connect_filter
from playhead.proxy.sandbox.kernel.bpf import assemble
from playhead.proxy.sandbox.kernel.seccomp import ALLOW, ASK, CALLS, MACHINES
from playhead.tests.support import bpf


@pytest.mark.parametrize("machine", MACHINES)
def test_only_connect_is_reported(machine: str) -> None:
    """Nothing is ever refused; the calls of another architecture mean something else."""
    column = tuple(MACHINES).index(machine)
    program = assemble(connect_filter.program(machine))

    def run(number: int, architecture: int) -> int:
        seen = struct.pack("=IIQ6Q", number, architecture, 0, *[0] * 6)
        return bpf.run(program, lambda at, size: int.from_bytes(seen[at : at + size], "little"))

    for name, numbers in CALLS.items():
        reported = name in ("connect", "io_uring_setup")
        assert run(numbers[column], MACHINES[machine]) == (ASK if reported else ALLOW)
    assert run(CALLS["connect"][column], 0x40000003) == ALLOW
    named = connect_filter.find_reported(machine)
    assert named[CALLS["connect"][column]] == "connect"


def test_another_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so as a kernel would that has no such thing."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(OSError, match="riscv64") as failed:
        connect_filter.install(may_forbid=True)
    assert failed.value.errno == errno.ENOSYS
