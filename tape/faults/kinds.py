"""The list of faults: what each word of `inject` does. `docs/extending.md` says how to add one."""

from ...config import Inject
from ..policy.faults import Injection
from .cut import Cut
from .delay import Delay
from .none import NoFault
from .reset import Reset
from .status import Status
from .timeout import Timeout
from .timeout_after_success import TimeoutAfterSuccess

KINDS: dict[Inject, NoFault] = {
    Inject.DELAY: Delay(),
    Inject.STATUS: Status(),
    Inject.CUT: Cut(),
    Inject.RESET: Reset(),
    Inject.TIMEOUT: Timeout(),
    Inject.TIMEOUT_AFTER_SUCCESS: TimeoutAfterSuccess(),
}


def find_kind(injection: Injection) -> NoFault:
    """Find what the rule that hits a request does."""
    return KINDS[injection.kind]
