"""Texts that somebody gives a command: a file that is named, or what they make of a text in their editor."""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from .errors import EngineError

_MOST_BYTES = 8 << 20
"""Of a file that is given."""


def read_file(path: Path) -> bytes:
    """Read a file that is named on a command line. Raises: EngineError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EngineError(
            f"{path} cannot be read: {reason}", "name a file with the text"
        ) from error
    if len(data) > _MOST_BYTES:
        raise EngineError(f"{path} is longer than {_MOST_BYTES >> 20} MiB", "give a shorter file")
    return data


def edit_text(text: bytes, name: str) -> bytes:
    """Have a person edit a text in their editor. Raises: EngineError, where that cannot be done or changes nothing."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise EngineError(
            "no editor is known for --edit", "set EDITOR, or give a file with --answer FILE"
        )
    suffix = ".json" if _is_json(text) else ".txt"
    with tempfile.TemporaryDirectory(prefix="playhead-edit-") as folder:
        path = Path(folder, f"{name}{suffix}")
        path.write_bytes(text)
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EngineError(
                f"the editor {editor!r} cannot be started: {reason}", "set EDITOR"
            ) from error
        if code:
            raise EngineError(f"the editor {editor!r} ended with {code}", "nothing was run")
        edited = read_file(path)
    if edited == text:
        raise EngineError("the text was not changed", "nothing was run")
    return edited


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
