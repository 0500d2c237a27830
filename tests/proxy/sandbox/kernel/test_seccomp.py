"""The filter of system calls, read as the kernel reads it, for both machines that it is written for."""

import errno
import struct

import pytest

from playhead.proxy.sandbox.kernel.bpf import Op, assemble
from playhead.proxy.sandbox.kernel.seccomp import (
    ALLOW,
    ASK,
    CALLS,
    ERROR,
    KILL,
    MACHINES,
    STARTS,
    program,
)
from playhead.tests.support.bpf import run

UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DGRAM, RAW, SEQPACKET, CLOEXEC = 1, 2, 3, 5, 0o2000000
NO_FAMILY, REFUSED, NOT_THERE = (
    ERROR | number for number in (errno.EAFNOSUPPORT, errno.EPERM, errno.ENOSYS)
)
ROWS = {
    # what: (call, arguments, contained, strict)
    "IPv4": ("socket", (INET, STREAM), ALLOW, ALLOW),
    "IPv6": ("socket", (INET6, STREAM), ALLOW, ALLOW),
    "netlink": ("socket", (NETLINK, RAW), ALLOW, ALLOW),
    "Unix": ("socket", (UNIX, STREAM), ALLOW, NO_FAMILY),
    "Unix, packets in order": ("socket", (UNIX, SEQPACKET | CLOEXEC), ALLOW, NO_FAMILY),
    "Unix, datagrams": ("socket", (UNIX, DGRAM | CLOEXEC), NO_FAMILY, NO_FAMILY),
    "Unix, raw": ("socket", (UNIX, RAW), NO_FAMILY, NO_FAMILY),
    "packets": ("socket", (PACKET, RAW), NO_FAMILY, NO_FAMILY),
    "vsock": ("socket", (VSOCK, STREAM), NO_FAMILY, NO_FAMILY),
    "no family": ("socket", (0, STREAM), NO_FAMILY, NO_FAMILY),
    "a family with upper bits": ("socket", (VSOCK | 1 << 40, STREAM), NO_FAMILY, NO_FAMILY),
    "a pair": ("socketpair", (UNIX, STREAM | CLOEXEC), ALLOW, ALLOW),
    "a pair of packets in order": ("socketpair", (UNIX, SEQPACKET), ALLOW, ALLOW),
    # It can be sent to any path.
    "a pair of datagrams": ("socketpair", (UNIX, DGRAM), NO_FAMILY, NO_FAMILY),
    "a raw pair": ("socketpair", (UNIX, RAW | CLOEXEC), NO_FAMILY, NO_FAMILY),
    "a pair of another family": ("socketpair", (30, STREAM), NO_FAMILY, NO_FAMILY),
    "a thread": ("clone", (0x3D0F00, 0), ALLOW, ALLOW),
    "a child": ("clone", (17, 0), ALLOW, ALLOW),
    "a namespace of users": ("clone", (0x10000011, 0), REFUSED, REFUSED),
    "a namespace of control groups": ("clone", (0x02000011, 0), REFUSED, REFUSED),
    "clone3": ("clone3", (0, 0), NOT_THERE, NOT_THERE),
    "unshared files": ("unshare", (0x400, 0), ALLOW, ALLOW),
    "an unshared network": ("unshare", (0x40000000, 0), REFUSED, REFUSED),
    "an unshared clock": ("unshare", (0x80, 0), REFUSED, REFUSED),
    "typing for the shell": ("ioctl", (0, 0x5412), REFUSED, REFUSED),
    "typing for the console": ("ioctl", (0, 0x541C), REFUSED, REFUSED),
    "another ioctl": ("ioctl", (0, 0x5413), ALLOW, ALLOW),
    "io_uring": ("io_uring_setup", (8, 0), NOT_THERE, NOT_THERE),
    **{
        name: (name, (0, 0), REFUSED, REFUSED)
        for name in ("setns", "mount", "umount2", "fsopen", "move_mount", "keyctl", "request_key", "bpf",
                     "open_by_handle_at", "finit_module", "kexec_load", "swapon", "reboot", "clock_settime")
    },
}  # fmt: skip


def _asked(machine: int, number: int, arguments: tuple[int, ...], code: bytes) -> int:
    data = struct.pack("=iIQ6Q", number, machine, 0, *arguments, *([0] * (6 - len(arguments))))
    return run(code, lambda place, size: int.from_bytes(data[place : place + size], "little"))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("what", ROWS)
def test_what_is_refused(machine: str, what: str) -> None:
    """By the call and its arguments, of which the kernel reads the lower half alone."""
    name, arguments, contained, strict = ROWS[what]
    number = CALLS[name][tuple(MACHINES).index(machine)]
    for expected, is_strict in ((contained, False), (strict, True)):
        code = assemble(program(machine, strict=is_strict))
        assert _asked(MACHINES[machine], number, arguments, code) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_a_connection_is_asked_for_where_somebody_answers(machine: str) -> None:
    """Whatever it leads to: the address is where no filter sees it."""
    number = CALLS["connect"][tuple(MACHINES).index(machine)]
    for asks, expected in ((True, ASK), (False, ALLOW)):
        code = assemble(program(machine, strict=False, asks=asks))
        assert _asked(MACHINES[machine], number, (3, 0, 16), code) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", STARTS)
def test_the_start_of_a_program_is_told_where_somebody_listens(machine: str, name: str) -> None:
    """Elsewhere it goes on unseen."""
    number = CALLS[name][tuple(MACHINES).index(machine)]
    for asks, expected in ((True, ASK), (False, ALLOW)):
        code = assemble(program(machine, strict=False, asks=asks))
        assert _asked(MACHINES[machine], number, (), code) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_else_is_allowed(machine: str) -> None:
    """Each number that no rule names."""
    code = assemble(program(machine, strict=True))
    known = {numbers[tuple(MACHINES).index(machine)] for numbers in CALLS.values()}
    asked = {number: _asked(MACHINES[machine], number, (), code) for number in range(600)}
    assert {number for number, said in asked.items() if said != ALLOW} <= known


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_kill(machine: str) -> None:
    """Their numbers mean something else; of x86-64 the short pointers, too."""
    code = assemble(program(machine, strict=False))
    others = {0x40000003, 0x40000028, *MACHINES.values()} - {MACHINES[machine]}
    assert {_asked(other, 1, (), code) for other in others} == {KILL}
    if machine == "x86_64":
        assert _asked(MACHINES[machine], 0x40000029, (VSOCK, STREAM), code) == KILL


def test_a_jump_goes_forward() -> None:
    """Anything else is a mistake of ours, and no filter."""
    backwards: list[Op | str] = ["here", Op(0x15, 1, "here")]
    too_far: list[Op | str] = [Op(0x15, 1, "far"), *[Op(0x06)] * 300, "far"]
    for wrong in (backwards, too_far):
        with pytest.raises(ValueError, match="no jump"):
            assemble(wrong)
