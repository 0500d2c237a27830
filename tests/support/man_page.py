"""The man page of `playhead`, made of the commands and the exit codes: `proxy/command_line/playhead.1` (`just reference`)."""

import re
from collections.abc import Iterator

import click

from playhead import __version__
from playhead.proxy.cli import cli
from playhead.proxy.commands import GROUPS
from playhead.tape.exit_codes import ExitCode

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"`([^`]+)`")


def make_man_page() -> str:
    """Give the page, in man(7)."""
    return "\n".join(_lines()) + "\n"


def escape(text: str) -> str:
    """Give a text of help or Markdown as roff shows it; code is bold."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    made = _CODE.sub(r"\\fB\1\\fR", _LINK.sub(r"\1", plain))
    return f"\\&{made}" if made[:1] in (".", "'") else made


def _lines() -> Iterator[str]:
    yield '.\\" Made by `just reference`.'
    yield f'.TH PLAYHEAD 1 "" "Playhead {__version__}" "User Commands"'
    yield from (".SH NAME", "playhead \\- record and replay proxy for AI agents")
    yield from (".SH SYNOPSIS", ".B playhead", "[\\-v] \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]")
    yield from (".SH DESCRIPTION", escape(str(cli.help)))
    yield "RUN is the name of a run, the beginning of a name that is that of one run, or \\fBlatest\\fR."
    yield from (".SH OPTIONS", *_options(cli))
    for title, commands in GROUPS.items():
        yield f'.SH "{title.upper()}"'
        for command in commands:
            yield from _command(command)
    yield ".SH EXIT STATUS"
    for code in ExitCode:
        yield from (".TP", f"\\fB{code.value}\\fR")
        yield escape("; ".join(f"{of}: {meaning}" for of, meaning in code.meanings))
    yield from (".SH FILES", ".TP", "\\fBplayhead.yaml\\fR")
    yield "The configuration, read from the working folder; \\fBplayhead init\\fR writes one."
    yield from (".TP", "\\fB.playhead\\fR", "The store, unless the configuration names another.")


def _command(command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"playhead {command.name}")
    words = [
        "[OPTIONS]",
        *(one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)),
    ]
    yield f'.SS "playhead {command.name} {escape(" ".join(words))}"'
    yield escape(" ".join(str(command.help).split()))
    yield from _options(command)


def _options(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    for option in command.params:
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            yield from (".TP", f"\\fB{escape(record[0])}\\fR", escape(record[1]) or "\\&")
