"""Find passwords in command lines, by the grammar of each command.

The same option means different things to different commands: `mysql -p NAME` asks for the password and NAME is a database, `sshpass -p NAME`
is given it, and to `psql` and `ssh` it is a port. So each command is listed with its own options; what is not listed is not looked at.

A command is taken apart into words first, as a shell does, or as the items of a list (`["redis-cli", "-a", "PASS"]`); quotes are no part of them.

Source: the manuals of the commands; how each reads its options was tried where it could be installed.
"""

import re
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ..credential_fields import KEY
from ..looks_like_secret import is_loose
from .command_lines import LONGEST, Line, Word
from .pattern_prefilter import Head
from .searched_text import Context, Found, Strings, is_boundary

_MOST_WORDS = 64
_MOST_OWN = 16
"""Words that may be between a command and its subcommand, or the command that it runs."""
_VALUE = re.compile(rb"[^\s\"'\\]{6,256}")
_PORTS = re.compile(rb"[\d.:]+(?:-[\d.:]+)?(?:/(?:tcp|udp))?")


class Option(NamedTuple):
    """How a command reads a password."""

    pattern: str
    """What is before the password in its own word, or the word before it."""
    joined: bool = False
    """Whether `-pVALUE` is read."""
    apart: bool = False
    """Whether `-p VALUE` is read."""
    behind: str = ""
    """What is between the option and the password."""


def _joined(option: str) -> Option:
    """Read `-pVALUE`, and no other way."""
    return Option(option, joined=True)


def _apart(option: str, behind: str = "") -> Option:
    """Read `-a VALUE`, and no other way."""
    return Option(option, apart=True, behind=behind)


def _short(option: str, behind: str = "") -> Option:
    """Read `-pVALUE` or `-p VALUE`."""
    return Option(f"{option}=?", joined=True, apart=True, behind=behind)


def _long(option: str, behind: str = "") -> Option:
    """Read `--password=VALUE` or `--password VALUE`."""
    return Option(f"{option}(?:=|$)", joined=True, apart=True, behind=behind)


def _equals(option: str) -> Option:
    """Read `--password=VALUE`, and no other way: without `=` it asks."""
    return Option(f"{option}=", joined=True)


class Command(NamedTuple):
    """Commands with one grammar."""

    names: tuple[str, ...]
    options: tuple[Option, ...]
    under: tuple[str, ...] = ()
    """Words of which the last has these options, behind options of the command itself."""
    valued: str | None = None
    """Short options with a value, where what is behind the options is another command."""
    last: bool = False
    """Whether the password is the last word."""
    named: bool = False
    """Whether options are names of settings, each before its value."""


_MYSQL = ("dump", "admin", "import", "show", "check", "binlog", "slap", "pump", "sh", "")
_MONGO = ("dump", "restore", "export", "import", "stat", "top", "files", "sh", "")
_LOGINS = ("docker", "podman", "nerdctl", "buildah", "skopeo", "oras", "oc", "cf", "ibmcloud")
_FLAGS = "[ABCEHNXbcfnqstv]*"
"""Of MySQL: what may be bundled with `-p`."""
_USER = r"[^%\s]{1,96}%"

COMMANDS = (
    Command(
        (*(f"mysql{one}" for one in _MYSQL), "mariadb-dump", "mariadb-admin", "mariadb"),
        (_joined(f"-{_FLAGS}p"), _equals("--password")),
    ),
    Command(("mycli",), (_short("-p"), _long("--pass(?:word)?"))),
    Command(tuple(f"mongo{one}" for one in _MONGO), (_short("-p"), _long("--password"))),
    # What follows is a command of its own, whose `-p` is a port or a database.
    Command(("sshpass",), (_short("-[vV]*p"),), valued="Pfd"),
    Command(("redis-cli", "valkey-cli"), (_short("-a"), _apart("--pass"))),
    *(
        Command(names, (_short("-p"), _long("--password")), under=(*under, "login"))
        for names, under in (
            (_LOGINS, ()),
            (("helm",), ("registry",)),
            (("crane",), ("auth",)),
            (("az",), ("acr",)),
        )
    ),
    Command(
        tuple(f"ldap{one}" for one in ("search", "add", "modify", "delete", "whoami", "passwd")),
        (_short("-[ACLMZcnvx]*w"),),
    ),
    Command(("smbclient", "rpcclient", "smbget"), (_short("-U", _USER), _long("--user", _USER))),
    Command(("openssl",), (_apart("-pass(?:in|out)?", "pass:"), _apart("-k"))),
    Command(("wget",), tuple(_long(f"--{one}password") for one in ("", "http-", "ftp-", "proxy-"))),
    Command(("sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub", "ipmitool"), (_short("-P"),)),
    Command(("cqlsh", "rabbitmqadmin"), (_short("-p"), _long("--password"))),
    Command(("clickhouse-client", "clickhouse client", "svn"), (_long("--password"),)),
    Command(("unzip", "zip"), (_short("-[0-9CDLVXacejklmoqruy]*P"),)),
    Command(("7z", "7za", "7zz"), (_joined("-p"),)),
    Command(("unrar", "rar"), (_joined("-h?p"),)),
    Command(("keytool", "jarsigner"), (_apart("-storepass"), _apart("-keypass"))),
    Command(
        ("aws",),
        (_apart(r"(?:profile\.[\w.-]{1,64}\.)?aws_(?:secret_access_key|session_token)"),),
        under=("configure", "set"),
        named=True,
    ),
    Command(("htpasswd",), (Option("-[A-Za-z0-9]*b"),), last=True),
)

_BY_NAME = {name.encode(): row for row in COMMANDS for name in row.names}
_MARKS = {
    name: re.compile("|".join(one.pattern.removesuffix("(?:=|$)") for one in row.options).encode())
    for name, row in _BY_NAME.items()
}
"""What a text has to contain to be taken apart."""
_OPTIONS = {
    one: (re.compile(one.pattern.encode()), re.compile(one.behind.encode()))
    for row in COMMANDS
    for one in row.options
}


def _any_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(map(_escape, names), key=len, reverse=True))})"


def _reversed(names: Iterable[bytes]) -> str:
    longest = sorted(names, key=len, reverse=True)
    return f"(?:{'|'.join(re.escape(name.decode()[::-1]) for name in longest)})"


def _escape(name: str) -> str:
    return name.replace(".", r"\.")


_ENDS = r"""(?:\.exe)?(?: |\\{0,3}["'][ ,])"""
_PLAIN_NAMES = _any_of(name for row in COMMANDS if not row.under for name in row.names)
_UPPER_NAMES = _any_of(name for row in COMMANDS if row.under for name in row.names)
# Of commands such as `docker` only one subcommand counts: it, a word before it, or an option follows.
_BELOW_WORDS = (b"login", b"registry", b"auth", b"acr", b"configure", b"-")
_BELOW = rf"(?:\\{{0,3}}[\"'])?(?:{b'|'.join(_BELOW_WORDS).decode()})"
COMMAND = Head(f"(?:{_PLAIN_NAMES}{_ENDS}|{_UPPER_NAMES}{_ENDS} ?{_BELOW})")
_NAMED = re.compile(
    rf"(?:{_reversed(_BELOW_WORDS)}(?:[\"']\\{{0,3}})? ?)?"
    rf"(?:(?P<blank> )(?:[\"']\\{{0,3}})?|(?P<listed>,[\"']\\{{0,3}}))(?P<exe>exe\.|)(?P<name>{_reversed(_BY_NAME)})".encode()
)
"""The end of a head, read backwards."""
_LONGEST_HEAD = 48


def find_in_command(context: Context, end: int, strings: Strings) -> Found | None:
    """Look at the words behind the name of a command."""
    data = context.data
    named = _NAMED.match(data[max(0, end - _LONGEST_HEAD) : end][::-1])
    if named is None:
        return None
    name, name_end = named["name"][::-1], end - named.start("exe")
    start = end - named.end("name")
    if not is_boundary(data, start):
        return None
    row, stop, lines = _BY_NAME[name], end + LONGEST, strings.lines
    if lines.find(_MARKS[name], name_end, stop) < 0:
        return None
    if named["blank"]:
        line, at = lines.behind(end - named.end("blank"))
    else:
        line, at = lines.listed(end - named.start("listed") - 1)
    place = _find_place(line, at, stop, row)
    if place is None:
        return None
    read = _VALUE.match(data, *place)
    if read is None:
        return None
    value = read[0]
    if (b"/" in value and not row.named) or _PORTS.fullmatch(value) or not is_loose(value):
        return None
    return Found(*read.span(), KEY, learn=True)


def _find_place(line: Line, at: int, stop: int, row: Command) -> tuple[int, int] | None:
    """Find where the password is in the words of a line from this number on."""
    if row.last:
        return _find_last(line.take(at, stop, _MOST_OWN))
    if row.valued is not None:
        return _find_own(line.take(at, stop, _MOST_OWN), row)
    if row.under:
        skipped = _count_own(line.take(at, stop, _MOST_OWN), row.under)
        if not skipped:
            return None
        at += skipped
    if row.named:
        return _find_setting(line.take(at, stop, _MOST_OWN), row.options)
    return line.first(row.names[0], at, stop, _MOST_WORDS, partial(_find_value, row.options))


def _count_own(words: list[Word], under: tuple[str, ...]) -> int:
    """Count the words up to a subcommand; before it may be options, each with a value or not. 0 where there is none."""
    option = False
    for at, word in enumerate(words):
        if word.text == under[-1].encode():
            return at + 1
        if not (option or word.text.startswith(b"-") or word.text.decode("latin-1") in under):
            break
        option = word.text.startswith(b"-") and b"=" not in word.text
    return 0


def _find_value(
    options: tuple[Option, ...], word: Word, following: Word | None
) -> tuple[int, int] | None:
    """Find where an option has the password."""
    if not word.text.startswith(b"-"):
        return None
    for option in options:
        pattern, behind = _OPTIONS[option]
        read = pattern.match(word.text)
        if read is None:
            continue
        holder, start = word, read.end()
        if start == len(word.text):
            if not option.apart or following is None or following.text.startswith(b"-"):
                continue
            holder, start = following, 0
        elif not option.joined:
            continue
        before = behind.match(holder.text, start)
        if before is not None:
            return holder.place(before.end())
    return None


def _find_setting(words: list[Word], options: tuple[Option, ...]) -> tuple[int, int] | None:
    """Find where the value of a setting is, behind its name."""
    for name, value in pairwise(words):
        if any(_OPTIONS[option][0].fullmatch(name.text) for option in options):
            return value.place(0)
    return None


def _find_own(words: list[Word], row: Command) -> tuple[int, int] | None:
    """Find where an option has the password, up to another command."""
    skipped = False
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else None
        place = _find_value(row.options, word, following)
        if place is not None:
            return place
        if not skipped and not word.text.startswith(b"-"):
            return None
        skipped = word.text[1:].decode("latin-1") in tuple(row.valued or "")
    return None


_HTPASSWD = re.compile(rb"-[A-Za-z0-9]+")


def _find_last(words: list[Word]) -> tuple[int, int] | None:
    """Look at `htpasswd -b FILE USER PASSWORD` and `htpasswd -nb USER PASSWORD`."""
    letters, at = b"", 0
    while at < len(words) and _HTPASSWD.fullmatch(words[at].text):
        letters += words[at].text
        # The cost is a word of its own.
        at += 2 if words[at].text[-1:] in b"Cr" else 1
    which = at + (1 if b"n" in letters else 2)
    if b"b" not in letters or which >= len(words):
        return None
    return words[which].place(0)
