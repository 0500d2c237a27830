"""Help by task: the commands of a group in lists, each below its heading, and the nearest name for a mistyped one."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import click

_WHOLE = 1000
"""More than any line of help has: nothing is cut off."""


class GroupedCommands(click.Group):
    """Commands that `--help` lists by task; give them with `sections`. Hidden ones are not listed, and run."""

    sections: Mapping[str, Sequence[click.Command]] = {}
    """Heading -> its commands, both in the order of the help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists."""
        width = max(len(str(one.name)) for commands in self.sections.values() for one in commands)
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (str(one.name).ljust(width), one.get_short_help_str(_WHOLE))
                        for one in commands
                    ]
                )

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; a mistyped one is answered with the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            shown = [name for name, one in self.commands.items() if not one.hidden]
            near = difflib.get_close_matches(args[0], shown, n=1)
            if near:
                raise click.UsageError(f"{error} Did you mean {near[0]!r}?", ctx) from error
            raise
