"""What a command can have begun before the rest of Playhead is imported: that takes longer than all of it, on another processor.

The search for named pipes, and the process that becomes the sandbox. Only modules that are quick to import are used here.
"""

import contextlib
import os
from collections.abc import Sequence

from ...config import Config
from ..folder.command_folders import find_area, find_around, find_linked
from ..sandbox.filesystem.named_pipes import Search, Where
from ..sandbox.filesystem.protection import find_unsearched, make_loaded_folders
from ..sandbox.network.listeners import Service
from ..sandbox.preflight import require_system
from ..sandbox.sandbox_process import Helper


class Early:
    """What was begun. Close it, whatever became of it."""

    def __init__(self, config: Config, command: Sequence[str]) -> None:
        """Begin, for a command that is to run in a sandbox on this machine. Raises: EngineError; OSError."""
        require_system()
        make_loaded_folders()
        self.search = begin_search(config)
        try:
            services = [Service(*rule.service) for rule in config.live if rule.service]
            self.helper = Helper(command, services, config.sandbox.ports)
        except BaseException:
            self.search.close()
            raise

    def close(self) -> None:
        """End what is left of it."""
        self.search.close()
        self.helper.close()


def begin_search(config: Config) -> Search:
    """Have named pipes be looked for from now on; whoever asks closes it."""
    closed = find_unsearched(config.store)
    also: list[str] = []
    if config.sandbox.files:
        with contextlib.suppress(FileNotFoundError):  # it was removed, which is said later on
            working, home = os.getcwd(), os.path.expanduser("~")
            area = find_area(working, home)
            around = find_around(area, working, home).folder
            also = [*filter(None, [around]), *find_linked(area)]
    where = Where.of(os.environ, closed, working_only=config.sandbox.files, also=also)
    return Search(where, config.sandbox.pipe_search_s)
