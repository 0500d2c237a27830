"""Find passwords in command lines, by the grammar of each command.

The same option means different things to different commands: `mysql -p NAME` asks for the password and NAME is a database, `sshpass -p NAME`
is given it, and to `psql` and `ssh` it is a port. So each command is listed with its own options; what is not listed is not looked at.

Source: the manuals of the commands; how each reads its options was tried where it could be installed.
"""

import re
from typing import NamedTuple

from ..acceptance import is_loose
from ..places import KEY
from .context import Context, Found, Strings, is_boundary
from .heads import Head

_MOST = 500
"""Bytes of a command that are looked at."""
_GAP = rb"(?:[^\n|;&\\]|\\(?!n)|\\(?=\\\\n)|(?<=\\\\)\\n|(?<=\\)\n){0,200}?"
"""Words before an option, over lines that are continued: in a string of JSON a line ends in `\\n`, and a continued one in `\\\\\\n`."""
_QUOTE = rb"(?:\\*[\"'])?"
_VALUE = rb"([^\s\"'\\]{6,256})"
_PORTS = re.compile(rb"[\d.:]+(?:-[\d.:]+)?(?:/(?:tcp|udp))?")


def _joined(option: str) -> str:
    """Read `-pVALUE`, and no other way."""
    return option


def _apart(option: str) -> str:
    """Read `-a VALUE`, and no other way."""
    return f"{option} (?!-)"


def _short(option: str) -> str:
    """Read `-pVALUE` or `-p VALUE`."""
    return f"{option}(?: (?!-)|=)?"


def _long(option: str) -> str:
    """Read `--password=VALUE` or `--password VALUE`."""
    return f"{option}(?:=| (?!-))"


def _equals(option: str) -> str:
    """Read `--password=VALUE`, and no other way: without `=` it asks."""
    return f"{option}="


class Command(NamedTuple):
    """Commands with one grammar."""

    names: tuple[str, ...]
    options: tuple[str, ...]
    """What may be directly before the password."""
    first: str = ""
    """What alone may be before them; by default any words."""


_MYSQL = ("dump", "admin", "import", "show", "check", "binlog", "slap", "pump", "sh", "")
_MONGO = ("dump", "restore", "export", "import", "stat", "top", "files", "sh", "")
_LOGINS = (
    "docker",
    "podman",
    "nerdctl",
    "buildah",
    "skopeo",
    "oras",
    "helm registry",
    "crane auth",
)
_CLOUDS = ("oc", "cf", "ibmcloud", "az", "az acr")

COMMANDS = (
    Command(
        (*(f"mysql{one}" for one in _MYSQL), "mariadb-dump", "mariadb-admin", "mariadb"),
        (_joined("-p"), _equals("--password")),
    ),
    Command(tuple(f"mongo{one}" for one in _MONGO), (_short("-p"), _long("--password"))),
    # What follows is a command of its own, whose `-p` is a port or a database.
    Command(("sshpass",), (_short("-p"),), "(?: -[veV]| -P ?[^ ]{1,40}){0,3}"),
    Command(("redis-cli", "valkey-cli"), (_apart("-a"), _apart("--pass"))),
    Command(
        tuple(f"{one} login" for one in (*_LOGINS, *_CLOUDS)), (_short("-p"), _long("--password"))
    ),
    Command(
        tuple(f"ldap{one}" for one in ("search", "add", "modify", "delete", "whoami", "passwd")),
        (_short("-w"),),
    ),
    Command(
        ("smbclient", "rpcclient", "smbget"), (r"(?:-U ?|--user[= ])[A-Za-z0-9_.\\@-]{1,64}%",)
    ),
    Command(("openssl",), (r"-pass(?:in|out)? pass:", _apart("-k"))),
    Command(("wget",), tuple(_long(f"--{one}password") for one in ("", "http-", "ftp-", "proxy-"))),
    Command(("sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub", "ipmitool"), (_short("-P"),)),
    Command(("cqlsh", "rabbitmqadmin"), (_short("-p"), _long("--password"))),
    Command(("clickhouse-client", "clickhouse client", "svn"), (_long("--password"),)),
    Command(("unzip", "zip"), (_short("-P"),)),
    Command(("7z", "7za", "7zz"), (_joined("-p"),)),
    Command(("unrar", "rar"), (r"-h?p",)),
    Command(("keytool", "jarsigner"), (_apart("-storepass"), _apart("-keypass"))),
)

_HEADS = "|".join(re.escape(name) for row in COMMANDS for name in row.names)
COMMAND = Head(f"(?:{_HEADS}|htpasswd) ".replace(r"\ ", " ").replace(r"\-", "-"))
_WAYS = {
    name.encode(): re.compile(
        (row.first.encode() or _GAP)
        + rb" (?:"
        + "|".join(row.options).encode()
        + rb")"
        + _QUOTE
        + _VALUE
    )
    for row in COMMANDS
    for name in row.names
}
_LONGEST = sorted(_WAYS, key=len, reverse=True)
_HTPASSWD = re.compile(
    rb"((?: -[A-Za-z0-5]+(?: \d{1,2}(?= ))?){1,5})((?: [^\s\"'\\-][^\s\"'\\]{0,200}){1,3})"
)


def find_in_command(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at the words behind the name of a command."""
    data, stop = context.data, end + _MOST
    if data.endswith(b"htpasswd", 0, end - 1):
        found = _find_behind_user(data, end - 1, stop)
    else:
        name = next(one for one in _LONGEST if data.endswith(one, 0, end - 1))
        if not is_boundary(data, end - 1 - len(name)):
            return None
        way = _WAYS[name].match(data, end - 1, stop)
        found = None if way is None else way.span(1)
    if found is None:
        return None
    value = data[found[0] : found[1]]
    if b"/" in value or _PORTS.fullmatch(value) or not is_loose(value):
        return None
    return Found(*found, KEY, learn=True)


def _find_behind_user(data: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """Look at `htpasswd -b FILE USER PASSWORD` and `htpasswd -nb USER PASSWORD`."""
    read = _HTPASSWD.match(data, start, stop)
    if read is None or b"b" not in read[1]:
        return None
    words = list(re.finditer(rb"[^ ]+", read[2]))
    which = 1 if b"n" in read[1] else 2
    if len(words) <= which:
        return None
    return read.start(2) + words[which].start(), read.start(2) + words[which].end()
