"""What a command can have begun before the rest of Playhead is imported: that takes longer than all of it, on another processor.

The search for named pipes, and the process that becomes the sandbox. Only modules that are quick to import are used here.
"""

import contextlib
import os
from collections.abc import Sequence

from ...config import Config
from ..folder.command_folders import find_area, find_linked
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
    where = Where.of(os.environ, closed, working_only=config.sandbox.files)
    if config.sandbox.files:
        with contextlib.suppress(FileNotFoundError):  # it was removed, which is said later on
            area = find_area(os.getcwd(), os.path.expanduser("~"))
            where = where._replace(roots=[*where.roots, *find_linked(area)])
    return Search(where, config.sandbox.pipe_search_s)
