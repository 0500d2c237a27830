"""Help by task: the commands of a group in lists, each below its heading; a mistyped word is answered with the one that is meant."""

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

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
_OTHER_FLAGS = {
    "-f": ("--yes", "--replace"),
    "--force": ("--yes", "--replace"),
    "--overwrite": ("--replace",),
    "-y": ("--yes",),
    "-n": ("--dry-run",),
    "--name": ("--run",),
    "--seq": ("--at",),
    "--no-sandboxed": ("--no-sandbox",),
}
"""Flags of other tools -> those here, of which a command has one at most."""
_EXAMPLES = {
    "ask": "playhead ask refund 3 --model gpt-5-mini",
    "bisect": "playhead bisect bad good -- python agent.py",
    "branch": "playhead branch refund --at 3 --answer answer.json -- python agent.py",
    "explore": "playhead explore refund -- python agent.py",
    "record": "playhead record --run refund -- python agent.py",
    "replay": "playhead replay refund -- python agent.py",
    "resume": "playhead resume refund -- python agent.py",
    "stdio": "playhead stdio -- npx some-server",
}
"""Of commands for which words have to be in an order."""
_SURPLUS = re.compile(r"Got unexpected extra arguments? \((\S+).*\)\.?")
"""Says which word is one too many, the first of several."""
_ALIKE = 0.1
"""By how much a word may be less like the typed one than the nearest, to be named beside it."""


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
            _require_value(ctx, command, found[2])
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what is missing or mistyped on its line is answered with what would be right."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise click.UsageError(_explain_flag(error), error.ctx) from error
        except click.UsageError as error:
            advice = _advise(error)
            if not advice:
                raise
            text = f"{error.format_message().removesuffix('.')}. {advice}"
            raise click.UsageError(text, error.ctx) from error


def _require_value(ctx: click.Context, command: click.Command, args: Sequence[str]) -> None:
    """Refuse a flag whose value was left out before `--`, which would be taken for it. Raises: UsageError."""
    at = args.index("--") if "--" in args else 0
    flag = args[at - 1] if at else ""
    for one in command.params:
        if isinstance(one, click.Option) and flag in one.opts and not (one.is_flag or one.count):
            inner = command.make_context(command.name, [], parent=ctx, resilient_parsing=True)
            value = one.make_metavar(inner)
            text = f"{flag} needs a value; expected: {flag} {value} {shlex.join(args[at:])}"
            raise click.UsageError(text, inner)


def _explain_flag(error: click.NoSuchOption) -> str:
    """Say which flag is meant by one that a command does not have."""
    if error.ctx is None:
        return error.format_message()
    known = [
        word
        for one in error.ctx.command.get_params(error.ctx)
        if isinstance(one, click.Option) and not one.hidden
        for word in (*one.opts, *one.secondary_opts)
    ]
    typed = error.option_name
    words = " ".join(error.ctx.command.collect_usage_pieces(error.ctx)[1:])
    plain = typed.removeprefix("--").upper()
    if plain in re.findall("[A-Z]+", words):
        return f"{error.message} {plain} is written without it: `{error.ctx.command_path} {words}`."
    near = [one for one in _OTHER_FLAGS.get(typed, ()) if one in known] or _find_nearest(
        typed, [one for one in known if one.startswith("--")] if typed.startswith("--") else ()
    )
    if not near:
        return error.message
    shown = repr(near[0]) if len(near) == 1 else f"one of: {', '.join(map(repr, near))}"
    return f"{error.message} Did you mean {shown}?"


def _find_nearest(typed: str, known: Iterable[str]) -> list[str]:
    """Give the words that are most like one, the nearest first."""
    near = difflib.get_close_matches(typed, known)
    ratios = [difflib.SequenceMatcher(None, one, typed).ratio() for one in near]
    return [one for one, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - _ALIKE]


def _advise(error: click.UsageError) -> str:
    """Give an example of what is missing on a command's line, or what a surplus word is for; empty where neither is the matter."""
    name = error.ctx.command.name if error.ctx is not None else None
    told = error.format_message()
    if name == "runs" and (surplus := _SURPLUS.fullmatch(told)):
        word = shlex.quote(surplus[1])
        return (
            f"`runs` takes no name: `playhead show {word}` shows a run,"
            f" and `playhead runs --grep {word}` searches all"
        )
    if not told.startswith("Missing "):
        return ""
    if name in _EXAMPLES:
        return f"As in: {_EXAMPLES[name]}"
    param = error.param if isinstance(error, click.MissingParameter) else None
    return "`playhead runs` lists the runs." if param and param.type.name == "run" else ""
