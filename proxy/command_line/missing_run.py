"""Commands that run COMMAND again on a recording: without RUN they say that it is missing, and which there is."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ... import PlayheadError
from ...config import Config, load, override

_DEFAULT_FILE = Path("playhead.yaml")


class NeedsRun(click.Command):
    """A command of the form `NAME RUN -- COMMAND...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; where COMMAND is given and RUN is not, say so. Raises: UsageError."""
        if "--" in args:
            at = args.index("--")
            # Flags may take words, so their reader says which are left over.
            given, _, _ = self.make_parser(ctx).parse_args(list(args[:at]))
            names = given.get("run", given.get("words"))
            has_run = isinstance(names, str | tuple) and bool(names)
            wants_none = given.get("like") or ctx.resilient_parsing
            if not has_run and not wants_none and not given.get("help") and args[at + 1 :]:
                raise click.UsageError(self._explain(given, args[at + 1 :]), ctx)
        return super().parse_args(ctx, args)

    def _explain(self, given: dict[str, Any], command: Sequence[str]) -> str:
        from .run_names import LATEST  # late: it knows the store

        form = f"playhead {self.name} RUN -- {shlex.join(command)}"
        text = f"no recording is named before `--`; expected: {form}"
        try:
            newest = _find_newest(given.get("config_file"), given.get("store"))
        except PlayheadError:
            return f"{text}. `playhead runs` lists the recordings."
        if newest is None:
            return f"{text}. There is none yet: make one with `playhead record -- {shlex.join(command)}`."
        return (
            f"{text}. The newest recording is {newest!r} (`{LATEST}`); `playhead runs` lists all."
        )


def _find_newest(config_file: str | None, store: str | None) -> str | None:
    """Give the name of the newest recording that has ended; None where there is none.

    Raises: ConfigError; StoreError, where the store cannot be read.
    """
    from ...store.paths import LOG
    from ..operations.open_store import open_store

    path = Path(config_file) if config_file else _DEFAULT_FILE
    config = load(path) if config_file or path.exists() else Config()
    config = override(config, {"store": store} if store else {})
    if not (config.store / LOG).exists():
        return None
    with open_store(config, readonly=True) as opened:
        latest = opened.runs.find_latest()
    return None if latest is None else latest.id
