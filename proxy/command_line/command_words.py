"""Commands that start COMMAND: behind its first word every word is its own, and an option there without `--` is refused.

So is a word before `--` that does not belong there: COMMAND would begin with it.
"""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
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
            self.require_words(ctx, args)
        return super().parse_args(ctx, args)

    def require_words(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Raise UsageError where COMMAND has options and no `--` before it, or words are before `--` that do not belong there."""
        at = self._find_command(ctx, args)
        if at is None or _HELP in args[at:]:
            return
        is_split = "--" in args
        if not is_program(args[at]):
            words = [one for one in _until_dashes(args[at:]) if not one.startswith("-")]
            if text := self._refuse_words(ctx, args, words, is_split=is_split):
                raise click.UsageError(text, ctx)
        option = _find_option(args[at:])
        if option is not None:
            raise click.UsageError(self._refuse(ctx, args[:at], args[at:], option), ctx)
        if is_split:
            line = shlex.join(["playhead", str(self.name), *args[:at], "--", *args[at:]])
            raise click.UsageError(
                f"`--` stands behind the command {args[at]}; put it before the command: {line}", ctx
            )

    def _refuse_words(
        self, ctx: click.Context, args: Sequence[str], words: Sequence[str], *, is_split: bool
    ) -> str:
        """Say what words are for that are no COMMAND; empty where they may be one.

        args: the line; is_split: whether `--` is behind the words.
        """
        if not is_split:
            return ""
        behind = ["--", *args[args.index("--") + 1 :]]
        name = next((one for one in ("--run", "--name") if self._has_option(one)), "")
        told = f"{shlex.join(words)} stands before `--`, where `{self.name}` takes no such word"
        if not name:
            usage = " ".join(self.collect_usage_pieces(ctx))
            return f"{told}; expected: {ctx.command_path} {usage}"
        line = shlex.join(["playhead", str(self.name), name, " ".join(words), *behind])
        return f"{told}; for a name of the run: {line}"

    def _has_option(self, name: str) -> bool:
        return any(isinstance(one, click.Option) and name in one.opts for one in self.params)

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
    options = [one for one in _until_dashes(command) if one.startswith("-") and one != "-"]
    return options[0] if options and options[0] != _HELP else None


def _until_dashes(args: Sequence[str]) -> Sequence[str]:
    """Give the words of a line before its `--`; all where it has none."""
    return args[: args.index("--")] if "--" in args else args


def is_program(word: str) -> bool:
    """Say whether a word is a program or a file, as the first of a command is."""
    return shutil.which(word) is not None or Path(word).is_file()
