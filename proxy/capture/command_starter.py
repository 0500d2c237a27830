"""The starter: a process that is made before the launcher has threads, installs the filter on itself and becomes the command.

Messages to it: `command`, with descriptors of its words, of its variables and of its standard output; `go`. From it: `installed`, with
the listener, or with the number of the error for which there is none; `unknown`, an error number, where the command cannot be
executed. That it hangs up says that it was.
"""

import contextlib
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from ..open_file_limit import usual_limit
from ..processes.disable_aslr import fixed_addresses
from ..sandbox.channel import Channel, pair, read_variables, write_variables
from . import connect_filter

_STDOUT = 1
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Installed(NamedTuple):
    """What became of the filter."""

    listener: int | None
    """Descriptor at which reports come; None where there is no filter."""
    error: int = 0
    """Why there is none."""
    no_new_privileges: bool = False
    """Whether set-uid programs gain nothing any more."""


class Starter:
    """The process, as the launcher sees it."""

    def __init__(self, channel: Channel, pid: int) -> None:
        """Hold its end of what is said; see `fork`."""
        self._channel = channel
        self.pid = pid
        """Of the command, once it runs."""

    @classmethod
    def fork(cls) -> "Starter":
        """Make it. Call it before this process has a second thread. Raises: OSError."""
        ours, theirs = pair()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                _be(theirs)
            finally:
                os._exit(127)
        theirs.close()
        return cls(ours, pid)

    def install(
        self, command: Sequence[str], variables: Mapping[str, str], *, may_forbid: bool
    ) -> Installed:
        """Tell it what it is to become, and have it install the filter.

        may_forbid: as for `connect_filter.install`.
        Raises: OSError, where it is gone.
        """
        given = [_hold(b"\0".join(map(os.fsencode, command))), write_variables(variables)]
        try:
            with contextlib.suppress(OSError):  # it is closed
                os.fstat(_STDOUT)
                given.append(os.dup(_STDOUT))
            data = {"may_forbid": may_forbid}
            self._channel.send_descriptors(given, **data)
        finally:
            for one in given:
                os.close(one)
        said = self._channel.receive_descriptors()
        if said is None:
            raise BrokenPipeError("the starter of the command has ended")
        message, descriptors = said
        listener = descriptors[0] if descriptors else None
        return Installed(listener, message.data["error"], message.data["no_new_privileges"])

    def go(self) -> None:
        """Have it become the command. Raises: OSError, with the number of the error, where it cannot be executed."""
        self._channel.send(go=True)
        said = self._channel.receive()
        self._channel.close()
        if said is not None:
            os.waitpid(self.pid, 0)
            raise OSError(said.data["unknown"], said.data["text"])

    def close(self) -> None:
        """Have it end, if it has not become the command."""
        self._channel.close()


def _hold(content: bytes) -> int:
    held = os.memfd_create("command")
    os.write(held, content)
    os.lseek(held, 0, os.SEEK_SET)
    return held


def _be(channel: Channel) -> NoReturn:
    """Be the starter."""
    # Until it is the command it ends without a word, and then it has what its parent's parent had.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    given = channel.receive_descriptors()
    if given is None:
        os._exit(0)
    told, (words_at, variables_at, *stdout) = given
    with open(words_at, "rb") as file:
        words = file.read().split(b"\0")
    variables = read_variables(variables_at)
    for one in stdout:
        os.dup2(one, _STDOUT, inheritable=True)
        os.close(one)
    listener, error, forbidden = None, 0, False
    try:
        listener, forbidden = connect_filter.install(may_forbid=told.data["may_forbid"])
    except OSError as failure:
        error = failure.errno or -1
    held = [] if listener is None else [listener]
    channel.send_descriptors(held, error=error, no_new_privileges=forbidden)
    for one in held:
        os.close(one)
    if channel.receive() is None:
        os._exit(0)
    if listener is not None:
        # A report, so that the number of one is known. It leads nowhere.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as nothing:
            nothing.connect("")
    _execute(channel, words, variables)


def _execute(channel: Channel, words: list[bytes], variables: dict[bytes, bytes]) -> NoReturn:
    os.setpgid(0, 0)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        # What Popen closes is closed here: of what our own parent has left open nothing is the command's.
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != channel.socket.fileno():
                with contextlib.suppress(OSError):
                    os.set_inheritable(int(name), False)
        told = {os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()}
        with usual_limit(), fixed_addresses(told):
            os.execvpe(words[0], words, variables)
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        channel.send(unknown=getattr(error, "errno", None) or 0, text=text)
    os._exit(127)
