"""A process that archives and is killed on its way: POINT CONFIG."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from playhead.proxy.cli import main
from playhead.store.archive import storage as place
from playhead.store.archive.batch_index import ArchivedRuns


def _die(*_: Any) -> None:
    os._exit(9)


def _dying_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> None:
        function(*arguments)
        os._exit(9)

    return call


def _rename(source: Any, target: Any) -> None:
    if "steps" in str(target):
        os._exit(9)
    os.replace(source, target)


if __name__ == "__main__":
    point, config = sys.argv[1:]
    signal.alarm(50)
    if point == "first file":
        place.os.rename = _die  # type: ignore[attr-defined]
    elif point == "index":
        place.os.rename = _rename  # type: ignore[attr-defined]
    elif point == "taking out":
        ArchivedRuns.moved = _die  # type: ignore[method-assign,assignment]
    else:
        ArchivedRuns.moved = _dying_after(ArchivedRuns.moved)  # type: ignore[method-assign]
    main(["archive", "-c", config])
