"""Help by task: the commands of a group in lists, each below its heading; a mistyped word is answered with the one that is meant."""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from .usage_advice import advise, explain_flag, refuse_single_dash

_WHOLE = 1000
"""More than any line of help has: nothing is cut off."""
_OTHER_COMMANDS = {
    "delete": "erase",
    "help": "--help",
    "list": "runs",
    "log": "show",
    "logs": "show",
    "ls": "runs",
    "play": "replay",
    "ps": "runs",
    "remove": "erase",
    "rm": "erase",
    "run": "record",
    "start": "serve",
    "version": "--version",
}
"""Words of other tools -> what they mean here."""
_LINE = "playhead.line"
"""Under which a context has that of the command, and the words of its line."""


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
        """Find a command; a mistyped one is answered with the nearest. Raises: UsageError."""
        try:
            found = super().resolve_command(ctx, args)
        except click.UsageError as error:
            shown = [name for name, one in self.commands.items() if not one.hidden]
            typed = args[0].lower()
            near = _OTHER_COMMANDS.get(typed) or next(
                iter(difflib.get_close_matches(typed, shown, n=1)), None
            )
            text = error.message
            advice = f" Did you mean {near!r}?" if near else " `playhead --help` lists all."
            raise click.UsageError(f"{text}{advice}", ctx) from error
        command = found[1]
        if command is not None and not ctx.resilient_parsing:
            inner = command.make_context(command.name, [], parent=ctx, resilient_parsing=True)
            ctx.meta[_LINE] = inner, [*found[2]]  # which click takes apart
            refuse_single_dash(inner, found[2])
            _require_value(inner, found[2])
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what is missing or mistyped on its line is answered with what would be right."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise click.UsageError(explain_flag(error, ctx.meta[_LINE][1]), error.ctx) from error
        except click.UsageError as error:
            if error.ctx is None and _LINE in ctx.meta:  # as click's own reader of flags leaves it
                error.ctx = ctx.meta[_LINE][0]
            advice = advise(error)
            if not advice:
                raise
            text = f"{error.format_message().removesuffix('.')}. {advice}"
            raise click.UsageError(text, error.ctx) from error


def _require_value(ctx: click.Context, args: Sequence[str]) -> None:
    """Refuse a flag whose value was left out before `--`, which would be taken for it. Raises: UsageError."""
    at = args.index("--") if "--" in args else 0
    flag = args[at - 1] if at else ""
    for one in ctx.command.params:
        if isinstance(one, click.Option) and flag in one.opts and not (one.is_flag or one.count):
            value = one.make_metavar(ctx)
            text = f"{flag} needs a value; expected: {flag} {value} {shlex.join(args[at:])}"
            raise click.UsageError(text, ctx)
