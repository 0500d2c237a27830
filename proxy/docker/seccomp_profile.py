"""The seccomp profile of an agent's container: the rules of our sandbox in Docker's format.

    python -m playhead.proxy.docker.seccomp_profile

writes `seccomp.json`, and beside it `seccomp-strict.json`, which refuses Unix sockets with a path too.

Docker's own default lets vsock through before 23.0 and io_uring before 25.0, and knows nothing of typing into terminals.
With every capability dropped its long list of what is allowed adds nothing to this one of what is refused. Docker takes several conditions on one argument as alternatives, and knows "equal under a mask", not "any of these bits":
so a family is refused by its number, and each bit by a rule of its own.

Source: docs.docker.com/engine/security/seccomp; seccomp_rule_add(3).
"""

import errno
import json
from pathlib import Path
from typing import Any

from ..sandbox.kernel import seccomp

FILE = Path(__file__).with_name("seccomp.json")
STRICT_FILE = Path(__file__).with_name("seccomp-strict.json")
_ARCHITECTURES = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
_NO_STREAMS = [kind for kind in range(seccomp.TYPE_BITS + 1) if kind not in seccomp.STREAMS]
_WHOLE = 0xFFFFFFFF


def profile(*, strict: bool = False) -> dict[str, Any]:
    """Write the profile."""
    families = sorted(one for one in seccomp.FAMILIES if one != seccomp.UNIX or not strict)
    unknown = [family for family in range(families[-1]) if family not in families]
    sockets = [_argument(0, family) for family in unknown]
    sockets.append({"index": 0, "value": families[-1], "op": "SCMP_CMP_GT"})
    pairs = {"index": 0, "value": seccomp.UNIX, "op": "SCMP_CMP_NE"}
    bits = [1 << place for place in range(32) if seccomp.NEW_NAMESPACE >> place & 1]
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": list(_ARCHITECTURES),
        "syscalls": [
            _rule(seccomp.NOT_THERE, errno.ENOSYS),
            _rule(seccomp.REFUSED, errno.EPERM),
            *(_rule(["socket"], errno.EAFNOSUPPORT, one) for one in sockets),
            _rule(["socketpair"], errno.EAFNOSUPPORT, pairs),
            *(
                _rule([call], errno.EAFNOSUPPORT, _argument(0, seccomp.UNIX), one)
                for call in (("socketpair",) if strict else ("socket", "socketpair"))
                for one in (_argument(1, kind, seccomp.TYPE_BITS) for kind in _NO_STREAMS)
            ),
            *(_rule(["ioctl"], errno.EPERM, _argument(1, number)) for number in seccomp.TYPING),
            *(_rule(["clone"], errno.EPERM, _argument(0, bit, bit)) for bit in bits),
            *(
                _rule(["unshare"], errno.EPERM, _argument(0, bit, bit))
                for bit in (*bits, seccomp.NEW_TIME)
            ),
        ],
    }


def _argument(index: int, value: int, mask: int = _WHOLE) -> dict[str, Any]:
    # The lower half alone is what the kernel looks at.
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _rule(names: Any, number: int, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "names": list(names),
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": number,
        "args": list(conditions),
    }


if __name__ == "__main__":
    for path, strict in ((FILE, False), (STRICT_FILE, True)):
        path.write_text(json.dumps(profile(strict=strict), indent=1) + "\n")
