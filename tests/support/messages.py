"""What a worker of pytest-xdist says to the process that prints: of a test that passes, its outcome and its end.

Six messages a test, each packed, sent, read and unpacked by threads of two processes, cost more than most tests do.
"""

from collections.abc import Callable
from typing import Any

import pytest

_NOT_READ = frozenset(["logstart", "logfinish"])


def say_less(config: pytest.Config) -> None:
    """Leave out messages that change nothing of what is printed; in a process that is no worker do nothing.

    All are sent where options ask for more than outcomes: times of fixtures, every name, or a file of results.
    """
    option = config.option
    if option.verbose > 0 or option.durations or option.xmlpath or option.reportchars.count("P"):
        return
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = _without_trifles(plugin.sendevent)


def _without_trifles(send: Callable[..., None]) -> Callable[..., None]:
    def send_what_is_read(name: str, **values: Any) -> None:
        if name not in _NOT_READ and not (name == "testreport" and _is_trifle(values["data"])):
            send(name, **values)

    return send_what_is_read


def _is_trifle(report: dict[str, Any]) -> bool:
    """Say whether a report is of fixtures that did as they should: what the test itself did has one of its own."""
    return bool(report["when"] != "call" and report["outcome"] == "passed")
