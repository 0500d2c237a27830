"""Write variables as env files: for shells, `.env` files, `docker run --env-file` and GitHub Actions.

A value comes out of each reader byte for byte as it went in, whatever it holds, or is refused: no format is written
whose readers would take it for something else.
"""

import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from ..errors import EngineError


class Form(StrEnum):
    """Who reads it."""

    SH = "sh"
    FISH = "fish"
    DOTENV = "dotenv"
    DOCKER = "docker"
    GITHUB = "github"


_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_LONGEST_LINE = 60_000
"""Bytes; Docker's reader gives up at 64 KiB (`bufio.Scanner`)."""


def render_env_file(variables: Mapping[str, str], removed: Iterable[str], form: Form) -> str:
    """Write variables, one after the other.

    removed: names to take out; only shells can.
    Raises: EngineError, naming the variable whose value a form cannot hold.
    """
    words = " ".join(removed)
    taken_out = {Form.SH: f"unset {words}\n", Form.FISH: f"set -e {words}; or true\n"}
    lines = [taken_out.get(form, "")] if words else []
    lines += [f"{_WRITERS[form](name, value)}\n" for name, value in variables.items()]
    return "".join(lines)


def _sh(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _fish(name: str, value: str) -> str:
    # Source: fish manual, "Quotes": in single quotes a backslash escapes only itself and the quote.
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"set -gx {name} '{escaped}'"


def _dotenv(name: str, value: str) -> str:
    """Write what python-dotenv, Node, Docker Compose and a shell that sources it read alike.

    They differ in what a backslash is, and python-dotenv puts variables in between any quotes.
    """
    if _PLAIN.fullmatch(value):
        return f"{name}={value}"
    if not re.search(r"['\\\r]|\$\{", value):
        return f"{name}='{value}'"
    if not re.search(r"[\"\\\r$`]", value):
        return f'{name}="{value}"'
    raise _refusal(
        name,
        "a .env file",
        "a backslash, a variable or quotes of both kinds, which its readers take differently",
    )


def _docker(name: str, value: str) -> str:
    # Source: docker/cli, pkg/kvfile: lines are taken as they are, without quotes, and have to be UTF-8.
    if re.search(r"[\r\n]", value):
        raise _refusal(name, "an env file of Docker's", "a line break")
    if len(_utf8(name, value, "an env file of Docker's")) > _LONGEST_LINE:
        raise _refusal(name, "an env file of Docker's", f"more than {_LONGEST_LINE} bytes")
    return f"{name}={value}"


def _github(name: str, value: str) -> str:
    # Source: GitHub documentation, "Workflow commands", multiline strings; actions/runner, FileCommandManager.cs.
    _utf8(name, value, "a file of GitHub's")
    if not re.search(r"[\r\n]", value):
        return f"{name}={value}"
    end = f"playhead_{secrets.token_hex(16)}"
    return f"{name}<<{end}\n{value}\n{end}"


def _utf8(name: str, value: str, where: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _refusal(name, where, "bytes that are not UTF-8") from None


def _refusal(name: str, where: str, what: str) -> EngineError:
    return EngineError(
        f"{name} cannot be written to {where}: its value holds {what}",
        "Change or unset that variable, give --ca-dir a folder with a plain name, or use another --format.",
    )


_WRITERS: Mapping[Form, Callable[[str, str], str]] = {
    Form.SH: _sh,
    Form.FISH: _fish,
    Form.DOTENV: _dotenv,
    Form.DOCKER: _docker,
    Form.GITHUB: _github,
}
