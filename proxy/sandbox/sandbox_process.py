"""The process that becomes a sandbox, seen from outside: it leaves the machine's network while the launcher is still being imported.

Little is known when it is started: the command, and what is to listen. What is hidden, and the command's variables, it is told later.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ... import __path__ as package_path
from ...store.encryption.key import VARIABLE as KEY_VARIABLE
from ..open_file_limit import usual_limit
from .channel import fill_variables, hold_variables, pair
from .init import START
from .network.listeners import Service


class Helper:
    """The process. Close it, whatever became of it."""

    def __init__(
        self, command: Sequence[str], services: Sequence[Service], ports: Sequence[int]
    ) -> None:
        """Start it.

        services: what it lets in.
        ports: further ones on which the proxy answers.
        """
        self.channel, theirs = pair()
        # What the command's variables ask for (PYTHONPATH, LD_PRELOAD) is not for the helper.
        self._variables = hold_variables()
        passed = (theirs.socket.fileno(), self._variables)
        try:
            with usual_limit():
                self.process = subprocess.Popen(
                    [sys.executable, *START, package_path[0], *map(str, passed), *command],
                    env={name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
                    pass_fds=passed,
                    process_group=0,
                )
        finally:
            theirs.close()
        self.channel.send(launcher=os.getpid(), services=services, ports=ports)

    def give_variables(self, variables: Mapping[str, str]) -> None:
        """Have the command's variables be these."""
        fill_variables(self._variables, variables)
        os.close(self._variables)
        self._variables = -1

    def close(self) -> None:
        """End whatever is left of it. Twice is once."""
        # First of all: it has nothing to say about a channel that is closed.
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.channel.close()
        if self._variables >= 0:
            os.close(self._variables)
            self._variables = -1
