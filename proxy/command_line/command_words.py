"""Commands that start COMMAND: behind its first word every word is its own, and an option there without `--` is refused."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

_HELP = "--help"


class TakesCommand(click.Command):
    """A command of the form `NAME [WORD...] -- COMMAND...`.

    Click reads options wherever they stand. Without `--` it would take those of COMMAND for its own,
    and COMMAND would be run without them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words. Raises: UsageError."""
        if not ctx.resilient_parsing:
            self.require_dashes(ctx, args)
        return super().parse_args(ctx, args)

    def require_dashes(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Raise UsageError where COMMAND has options and no `--` before it."""
        at = self._find_command(ctx, args)
        option = None if at is None else _find_option(args[at:])
        if at is not None and option is not None:
            raise click.UsageError(self._refuse(ctx, args[:at], args[at:], option), ctx)

    def _list_words(self) -> list[str]:
        """List the arguments before COMMAND."""
        arguments = [one for one in self.params if isinstance(one, click.Argument)]
        return [str(one.name) for one in arguments if one.nargs == 1]

    def _find_command(self, ctx: click.Context, args: Sequence[str]) -> int | None:
        """Find the first word of a COMMAND that has no `--` before it. Raises: UsageError."""
        begin, read = 0, 0
        given: dict[str, Any] = {}
        while True:
            options, words = self._read_until_word(ctx, args[begin:])
            given |= options
            at = len(args) - words
            if not words or (at > begin and args[at - 1] == "--"):
                return None
            if read == self._count_words_before(given) or (
                "--" not in args and self._is_command(args[at], given)
            ):
                return at
            begin, read = at + 1, read + 1

    def _count_words_before(self, given: dict[str, Any]) -> int:
        """Count the words before COMMAND."""
        return len(self._list_words())

    def _is_command(self, word: str, given: dict[str, Any]) -> bool:
        """Say whether COMMAND begins with a word although one before it is missing."""
        return False

    def _read_until_word(
        self, ctx: click.Context, args: Sequence[str]
    ) -> tuple[dict[str, Any], int]:
        """Read options up to the first word that is none; give them, and how many words are left."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        given, left, _ = parser.parse_args(list(args))
        words = len(left)
        for one in self.params:
            if isinstance(one, click.Argument):
                match given.pop(str(one.name), None):
                    case str():
                        words += 1
                    case tuple(several):
                        words += len(several)
        return given, words

    def _refuse(
        self, ctx: click.Context, before: Sequence[str], command: Sequence[str], option: str
    ) -> str:
        """Say which option has no `--` before it, and give the line that is meant."""
        line = shlex.join(["playhead", str(self.name), *before, "--", *command])
        name = option.partition("=")[0]
        own = any(
            name in (*one.opts, *one.secondary_opts)
            for one in self.get_params(ctx)
            if isinstance(one, click.Option)
        )
        text = (
            f"{name!r} stands after the command {command[0]}; put `--` before the command: {line}"
        )
        return f"{text} (if {name!r} is for playhead, put it before the `--`)" if own else text


def _find_option(command: Sequence[str]) -> str | None:
    """Give the first option of a command line up to its `--`; None where there is none, or only help is asked for."""
    words = command[: command.index("--")] if "--" in command else command
    options = [one for one in words if one.startswith("-") and one != "-"]
    return options[0] if options and options[0] != _HELP else None
