"""Find passwords in command lines, by the grammar of each command.

The same option means different things to different commands: `mysql -p NAME` asks for the password and NAME is a database, `sshpass -p NAME`
is given it, and to `psql` and `ssh` it is a port. So each command is listed with its own options; what is not listed is not looked at.

A command is taken apart into words first, as a shell does, or as the items of a list (`["redis-cli", "-a", "PASS"]`); quotes are no part of them.

Source: the manuals of the commands; how each reads its options was tried where it could be installed.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from ..acceptance import is_loose
from ..places import KEY
from .context import Context, Found, Strings, is_boundary
from .heads import Head

_MOST = 500
"""Bytes of a command that are looked at."""
_MOST_WORDS = 64
_BACKSLASH = 92
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
    # The password is the last word.
    Command(("htpasswd",), (Option("-[A-Za-z0-9]*b"),)),
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


def _escape(name: str) -> str:
    return name.replace(".", r"\.")


_LISTED = r"""\\{0,3}["'],"""
_ENDS = rf"(?:\.exe)?(?: |{_LISTED})"
_PLAIN_NAMES = _any_of(name for row in COMMANDS if not row.under for name in row.names)
_UPPER_NAMES = _any_of(name for row in COMMANDS if row.under for name in row.names)
# Of commands such as `docker` only one subcommand counts: it, a word before it, or an option follows.
_BELOW = r"(?:\\{0,3}[\"'])?(?:login|registry|auth|acr|-)"
COMMAND = Head(f"(?:{_PLAIN_NAMES}{_ENDS}|{_UPPER_NAMES}{_ENDS} ?{_BELOW})")
_NAMED = re.compile(
    rf"({_PLAIN_NAMES}|{_UPPER_NAMES})(?:\.exe)?(?:( )|({_LISTED}))(?: ?{_BELOW})?\Z".encode()
)
_LONGEST_HEAD = 48


def find_in_command(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at the words behind the name of a command."""
    data = context.data
    named = _NAMED.search(data, max(0, end - _LONGEST_HEAD), end)
    if named is None or not is_boundary(data, named.start()):
        return None
    row, stop = _BY_NAME[named[1]], end + _MOST
    if _MARKS[named[1]].search(data, named.end(1), stop) is None:
        return None
    if named[2]:
        words = list(islice(_read_words(data, named.start(2), stop), _MOST_WORDS))
    else:
        words = list(islice(_read_list(data, named.end(3), stop), _MOST_WORDS))
    if row.under:
        words = _behind_subcommand(words, row.under)
    place = _find_last(words) if named[1] == b"htpasswd" else _find_value(words, row)
    if place is None:
        return None
    read = _VALUE.match(data, *place)
    if read is None:
        return None
    value = read[0]
    if b"/" in value or _PORTS.fullmatch(value) or not is_loose(value):
        return None
    return Found(*read.span(), KEY, learn=True)


class _Word(NamedTuple):
    """A word of a command, without its quotes."""

    text: bytes
    runs: tuple[tuple[int, int], ...]
    """Where its parts are."""

    def place(self, at: int) -> tuple[int, int]:
        """Give where a value is that begins at an offset of the text; a quote ends it."""
        for start, end in self.runs:
            if at < end - start:
                return start + at, end
            at -= end - start
        return 0, 0


_LINE_END = re.compile(rb"(?<!\\)(?<!\\\r)\n|(?<!\\)(?:\\{1,2}|\\{4}|\\{8})n")
"""In a string of JSON a line ends in `\\n`, and one that goes on in `\\\\\\n`; in a string in a string each backslash is two."""
_PIECE = re.compile(
    rb"""(?P<blank>(?:[ \t]|\\\r?\n|\\+n)+)|(?P<open>\\*["'])|(?P<plain>[^\s"'\\|;&]+|\\+)"""
)


def _read_words(data: bytes, at: int, stop: int) -> Iterator[_Word]:
    """Yield the words of a line of a shell, up to its end."""
    line = _LINE_END.search(data, at, stop)
    stop = stop if line is None else line.start()
    runs: list[tuple[int, int]] = []
    while (piece := _PIECE.match(data, at, stop)) is not None:
        start, at = piece.span()
        if piece["blank"]:
            if runs:
                yield _word(data, runs)
            runs = []
            continue
        if piece["open"]:
            close = data.find(piece["open"], at, stop)
            if close < 0 or data[close - 1] == _BACKSLASH:
                continue
            start, end, at = at, close, close + len(piece["open"])
        else:
            end = at
        if runs and runs[-1][1] == start:
            start = runs.pop()[0]
        runs.append((start, end))
    if runs:
        yield _word(data, runs)


def _word(data: bytes, runs: list[tuple[int, int]]) -> _Word:
    return _Word(b"".join(data[start:end] for start, end in runs), tuple(runs))


_ITEM = re.compile(
    rb"""(?:[\s,]|\\+[nrt])*+(?:(?P<open>\\*["'])(?P<text>[^\n]{0,256}?)(?<!\\)(?P=open)|(?P<name>[A-Za-z_][\w.]{0,64}))"""
)


def _read_list(data: bytes, at: int, stop: int) -> Iterator[_Word]:
    """Yield the items of a list of words, as in JSON and source code; names of variables among them."""
    while (item := _ITEM.match(data, at, stop)) is not None:
        at = item.end()
        yield _word(data, [item.span("text")] if item["open"] else [])


def _behind_subcommand(words: list[_Word], under: tuple[str, ...]) -> list[_Word]:
    """Give the words behind a subcommand; before it may be options, each with a value or not."""
    option = False
    for at, word in enumerate(words):
        if word.text == under[-1].encode():
            return words[at + 1 :]
        if not (option or word.text.startswith(b"-") or word.text.decode("latin-1") in under):
            break
        option = word.text.startswith(b"-") and b"=" not in word.text
    return []


def _find_value(words: list[_Word], row: Command) -> tuple[int, int] | None:
    """Find where the first option has the password."""
    skipped = False
    for at, word in enumerate(words):
        for option in row.options:
            pattern, behind = _OPTIONS[option]
            read = pattern.match(word.text)
            if read is None:
                continue
            holder, start = word, read.end()
            if start == len(word.text):
                if not option.apart or at + 1 == len(words):
                    continue
                holder, start = words[at + 1], 0
                if holder.text.startswith(b"-"):
                    continue
            elif not option.joined:
                continue
            before = behind.match(holder.text, start)
            if before is not None:
                return holder.place(before.end())
        if row.valued is not None and not skipped and not word.text.startswith(b"-"):
            return None
        skipped = row.valued is not None and word.text[1:].decode("latin-1") in tuple(row.valued)
    return None


_HTPASSWD = re.compile(rb"-[A-Za-z0-9]+")


def _find_last(words: list[_Word]) -> tuple[int, int] | None:
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
