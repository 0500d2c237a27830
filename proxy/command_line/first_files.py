"""The files of `playhead init`: a configuration with comments, and what keeps the store out of git."""

import json
import os
from pathlib import Path

from ... import PlayheadError
from ...config import load
from ...store.folder_ownership import make_own_folder
from ...store.paths import GITIGNORE

_STORE = "./.playhead"
_CONFIGURATION = """\
# The configuration of Playhead in this folder. `playhead record`, `replay` and `serve` read it.
# All of it may be left out. Lines with `#:` are examples: remove the `#: ` to use them.
# Every key is described in docs/configuration.md.

version: 1

# Where runs are kept. It holds keys and what agents said: do not commit it.
store: {store}

# What happens to a new run: record, playback or passthrough. For `playhead serve`.
mode: record

# Where `playhead serve` listens.
listen: 127.0.0.1:8080

# Places that an agent draws anew in each run, and that mean nothing. `playhead learn RUN_A RUN_B` proposes them.
#: ignore:
#:   - match: POST https://api.example.com/*
#:     json: ["$.request_id"]

# What must never be stored. Credentials and keys are replaced without this.
#: redact:
#:   - header: x-internal-token
#:   - pattern: "CUST-[0-9]{{6}}"

# Requests that change nothing, though their method says otherwise.
#: classes:
#:   read: ["POST https://search.example.com/query"]

# Effects that a person approves before they are sent (`playhead gates`).
#: effects:
#:   - match: POST https://api.example.com/v1/refunds
#:     gate: true

# How long runs are kept; `playhead gc` deletes older ones.
#: retention:
#:   keep: 90d
"""
_IGNORED = """\
# Playhead's store: keys and recordings. Made by `playhead init`.
*
"""


def write_first_files(file: Path, store: str | None) -> list[str]:
    """Write the configuration and the store's `.gitignore` where they are missing; give a line for each.

    store: folder of the store, for a new configuration; that of the configuration where there is one.
    Raises: ConfigError, for one that cannot be read; PlayheadError, where nothing can be written.
    """
    text = _CONFIGURATION.format(store=_STORE if store is None else json.dumps(store))
    written = [_write(file, text)]
    folder = load(file).store
    ignored = folder / GITIGNORE
    try:
        make_own_folder(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    written.append(_write(ignored, _IGNORED))
    return written


def _write(path: Path, text: str) -> str:
    """Write a file that is not there yet; say what was done. Raises: PlayheadError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return f"{os.fspath(path)} is there already: left as it is"
    except OSError as error:
        raise _unwritable(path, error) from error
    return f"made {os.fspath(path)}"


def _unwritable(path: Path, error: OSError) -> PlayheadError:
    return PlayheadError(
        f"cannot write {str(path)!r}: {error.strerror or error}",
        "run `playhead init` in a folder that you can write to, or name the store's with --store",
    )
