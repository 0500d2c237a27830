"""The seccomp profile that Docker installs: the filter of our own sandbox, in Docker's words."""

import json
import struct
from typing import Any

import pytest

from playhead.proxy.docker.seccomp_profile import FILE, STRICT_FILE, profile
from playhead.proxy.sandbox.kernel.bpf import assemble
from playhead.proxy.sandbox.kernel.seccomp import ALLOW, CALLS, ERROR, MACHINES, program
from playhead.tests.support.bpf import run

FAMILIES = range(48)
NEW_USER, NEW_NET, NEW_TIME, THREAD = 0x10000000, 0x40000000, 0x80, 0x3D0F00


def _judge(strict: bool, call: str, *arguments: int) -> int:
    """Decide as libseccomp does: every condition of a rule has to hold, and the first rule counts."""
    for rule in profile(strict=strict)["syscalls"]:
        if call in rule["names"] and all(_holds(one, arguments) for one in rule["args"]):
            return ERROR | int(rule["errnoRet"])
    return ALLOW


def _holds(condition: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    given, value = arguments[condition["index"]], condition["value"]
    match condition["op"]:
        case "SCMP_CMP_MASKED_EQ":
            return bool(given & value == condition["valueTwo"])
        case "SCMP_CMP_NE":
            return bool(given != value)
        case "SCMP_CMP_GT":
            return bool(given > value)
    raise AssertionError(condition)


def test_the_file_is_what_the_code_writes() -> None:
    """`python -m playhead.proxy.docker.seccomp_profile` after every change."""
    assert json.loads(FILE.read_text("utf-8")) == profile()
    assert json.loads(STRICT_FILE.read_text("utf-8")) == profile(strict=True)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        *(("socket", (family, 1)) for family in FAMILIES),
        *(("socketpair", (family, 1)) for family in FAMILIES),
        *((call, (1, kind)) for call in ("socket", "socketpair") for kind in (2, 3, 5, 0x80001)),
        *(("clone", (flags,)) for flags in (THREAD, NEW_USER, NEW_NET | 17, 17, NEW_TIME)),
        *(("unshare", (flags,)) for flags in (0x400, NEW_USER, NEW_NET, NEW_TIME)),
        *(("ioctl", (0, request)) for request in (0x5401, 0x5412, 0x541C)),
        *((call, ()) for call in CALLS if call not in ("socket", "socketpair", "clone", "unshare")),
    ],
)
def test_docker_refuses_what_our_own_sandbox_refuses(call: str, arguments: tuple[int, ...]) -> None:
    """Call by call, with the same error."""
    arguments = (*arguments, 0, 0)
    number = CALLS[call][tuple(MACHINES).index("x86_64")]
    padded = (*arguments, *[0] * 6)[:6]
    seen = struct.pack("=iIQ6Q", number, MACHINES["x86_64"], 0, *padded)
    for strict in (False, True):
        code = assemble(program("x86_64", strict=strict))
        ours = run(code, lambda place, size: int.from_bytes(seen[place : place + size], "little"))
        assert _judge(strict, call, *arguments) == ours


def test_no_rule_has_two_conditions_on_one_argument() -> None:
    """Docker would take them as alternatives."""
    for rule in (*profile()["syscalls"], *profile(strict=True)["syscalls"]):
        indexes = [condition["index"] for condition in rule["args"]]
        assert len(indexes) == len(set(indexes))
