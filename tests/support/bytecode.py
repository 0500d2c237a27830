"""Bytecode for programs that look for it in a folder of their own."""

import importlib
import importlib.util
import shutil
import sys
from pathlib import Path

from .prepared import FOR_OURS


def copy_bytecode(prefix: Path) -> None:
    """Copy what is loaded here, and what `playhead` loads, to where PYTHONPYCACHEPREFIX=prefix looks for it.

    Else each start of a program compiles some thousand modules, which takes seconds.
    """
    for name in FOR_OURS:
        importlib.import_module(name)
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        cached = Path(getattr(spec, "cached", None) or "/missing")
        if spec is None or not spec.origin or not cached.is_file():
            continue
        copy = prefix / Path(spec.origin).parent.relative_to("/") / cached.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(cached, copy)
