"""A command of ours that says `held` and stays as it is once it reports progress: `python -m ... WORDS`."""

import asyncio
import contextlib
import signal
import sys
import threading

from playhead.proxy.cli import main
from playhead.proxy.progress import ProgressBar


def _hold(self: ProgressBar, done: int, of: int) -> None:
    print("held", flush=True)
    if threading.current_thread() is not threading.main_thread():
        return  # whoever waits for it sees the signal
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return  # which would not see the signal; there is more to do than is waited for
    threading.Event().wait()


if __name__ == "__main__":
    # A shell that starts the tests in the background has them, and us, ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ProgressBar.__call__ = _hold  # type: ignore[method-assign]
    main(sys.argv[1:])
