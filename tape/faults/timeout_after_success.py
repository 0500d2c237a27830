"""The upstream is asked and does it; the client is told nothing."""

from .timeout import Timeout


class TimeoutAfterSuccess(Timeout):
    """The answer is kept, and the client waits until it gives up."""

    muted = True
