"""Find values behind telling names, and credentials in the places that exist for them in files, commands and header lines.

A head finds a name with what separates it from its value. Here the name is read backwards from there, the value forwards, and the
place decides which test the value has to pass:

* a credential in its own place (a line of settings, netrc, `curl -u`, a header line, a connection string): in any text;
* a value by its name: in fields, not in prompts and source code (`searched_text.Strings`).
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from ...records.credential_parts import find_tokens
from ..credential_fields import AUTHORIZATION, COOKIE, KEY, SECRET, SIGNATURE, TOKEN
from ..harmless import is_doubtful, is_harmless
from ..looks_like_secret import (
    is_basic,
    is_declared,
    is_generated,
    is_hex,
    is_key_like,
    is_loose,
    is_middle,
    is_placeholder,
    is_prefixed_key,
    is_random,
    is_strong,
)
from .lines.header_lines import HEADER_LINE, find_in_authorization, find_in_header_line
from .lines.query_parameters import QUERY_PARAMETER, find_in_query
from .passwords_in_commands import COMMAND, find_in_command
from .pattern_prefilter import Head
from .searched_text import MAX_VALUE, WORD_START, Context, Found, Strings
from .secrets_by_sibling_fields import MARKED
from .secrets_in_tables import COLUMN, WEB_KEY, find_in_column, find_web_key

_NAME = (
    "(?:(?:pass(?:word|wd|phrase|code)?|pwd|psk)(?:[12]|[_-]?confirm(?:ation)?)?|secret(?:[_. -]{0,2}key)?|token|jwt|credentials?|assertion|verifier|auth|bearer|"
    "(?:api|access|private|auth|signing|encryption|account|shared|master|app|session|service)[_. -]{0,2}key|[a-z0-9_-]key|key[_-]?base|keybase|"
    "session[_-]?id|device[_-]?code|(?:recovery|backup|scratch)[_. -]?code|security[_-]?token|auth(?:orization)?[_-]?code|appid|digest|cookie|session|signature)"
    "(?:[_-]?(?:value|string|binary|b64|base64))?"
)
_V = "[A-Za-z0-9_./+=~!@#$%^*|?&,:-]"
_SIGNED_V = "[!#-&(-\\[\\]-_a-~]"
"""Of a generated password: all but blanks, quotes and backslashes."""
_BLANK = "(?:[ \\t]|\\\\{1,7}t|\\xc2\\xa0|\\\\{1,7}u00a0)"
"""A blank, a tab or a non-breaking space, in a string of JSON too."""
_Q = "(?:\\\\{0,7}[\"'`\\]])"
_WHITE = (
    "(?:[ \\t'`]|\\\\{1,7}(?:[nrt\"']|u(?:00[aA]0|20[026][0-9a-fA-F]|[fF][eE][fF][fF]))|"
    "\\xc2\\xa0|\\xe2\\x80[\\x80-\\xaf]|\\xe2\\x81\\xa0|\\xef\\xbb\\xbf)"
)
"""What may be in quotes before a value: a blank of any kind, in a string of JSON too, or quotes of its own."""
_INTO = "(?:\\[\\s{0,8}|- |[>|][-+]?(?:\\s|\\\\n){1,8})?"
"""What may be between a name and its value in lists and blocks."""
_ASSIGN = (
    "(?:"
    + _NAME
    + "|authident)s?"
    + _Q
    + "{0,2}"
    + _BLANK
    + "{0,8}(?:=>|::=|[:?+]?=|:)(?:\\s|\\\\n|"
    + _BLANK
    + "){0,8}"
    + _INTO
    + "(?:\\\\{0,7}[\"'`]"
    + "[ \\t]{0,4}|base64:)?"
    + _SIGNED_V
    + "{8}"
)
_WHITE_FIRST = (
    _NAME + "s?\\\\{0,7}[\"']\\s{0,2}:\\s{0,4}\\\\{0,7}[\"']" + _WHITE + "{1,4}" + _SIGNED_V + "{8}"
)
"""Of JSON alone: anywhere else blanks are looked for in half the speed."""
_MAP = _NAME + "s?" + _Q + "{0,2}\\s{0,2}:\\s{0,4}[{\\[]"
"""Without what is in it: what nearly all JSON has would be tried at each place."""
_ATTRIBUTE = _NAME + "\\\\{0,7}[\"']\\s{1,4}(?:value|content)=\\\\{0,7}[\"']" + _V + "{8}"
_PLIST = _NAME + "</key>(?:\\s|\\\\n){0,8}<string>" + _V + "{8}"
_YAML = _NAME + "(?:\\s|\\\\n){1,12}value: [\"']?" + _V + "{8}"
_FORM = _NAME + "&value=" + _V + "{8}"
_ROW = _NAME + " {0,40}[|]{1,2} {1,8}" + _V + "{8}"
_CONFIGURE = "configure set [a-z0-9_.]{0,40}" + _NAME + " " + _V + "{8}"
_LAST_IN_OBJECT = "(?:" + _NAME + "|authorization)\\\\{0,7}[\"'](?:\\s|\\\\{1,7}n){0,24}}"
_REVERSE = "(?:name|key)\\\\{0,7}[\"']\\s?:\\s?\\\\{0,7}[\"'][a-z0-9_.-]{0,40}" + _LAST_IN_OBJECT
_SQL = "(?:password|identified by) ['\"]" + _V + "{8}"
_SHORT = '(?:pass(?:word|wd|phrase)?|pwd|psk)(?:[12]|[_-]?confirm(?:ation)?)?\\\\{0,7}["\']\\s{0,2}[:=]\\s{0,2}\\\\{0,7}["\'][^"\\\\\\s]{6}'
_ESCAPED = '(?:pass(?:word|wd|phrase)?|pwd|psk)"\\s{0,2}:\\s{0,2}"[^"\\\\\\s]{0,7}\\\\["\\\\u]'
"""A password of JSON that has a quote, a backslash or a letter outside of ASCII among its first characters."""
_PAIR = "(?:" + _NAME + "|authorization)s?\\\\{0,7}[\"']\\s{0,2},"
_FLAG = "--[a-z0-9-]{0,30}" + _NAME + "[ ][\"']?" + _V + "{8}"
_XML = (
    "<(?:[a-z0-9_]{1,20}:)?[a-z0-9_.-]{0,30}"
    + _NAME
    + "[^<>]{0,200}>(?:\\s{0,40}|<!\\[CDATA\\[)"
    + _V
    + "{8}"
)
_VALUE_FORWARD = re.compile(rb"[A-Za-z0-9_./+=~!@#$%^*|?:<>-]+")
_VALUE_PLAIN = re.compile(rb"[A-Za-z0-9_./+=~!@#$%^*|?:-]+")
_WORDS_OF_KEYS = (
    rb"ipa|ssecca|etavirp|htua|gningis|noitpyrcne|tnuocca|derahs|retsam|ppa|noisses|ecivres|terces"
)
_WORDS_OF_CODES = rb"yrevocer|pukcab|hctarcs"
_BACK = re.compile(
    rb"(?:(?:[ \t'`]|[nrt\"']\\{1,7}|[0-9a-fA-F]{4}u\\{1,7}|\xa0\xc2|[\x80-\xaf]\x80\xe2|\xa0\x81\xe2|\xbf\xbb\xef){0,4}(?P<quote>[\"'`]\\{0,7}))?"
    rb"(?::46esab)?[bru]?(?:\s{0,8}\[| -|(?:\s|n\\){1,8}[-+]?[|>])?(?:\s|n\\|t\\{1,7}|\xa0\xc2|0a00u\\{1,7}){0,8}(?P<sep>>=|=::|=[:?+]|[:=])(?:[ \t]|t\\{1,7}|\xa0\xc2|0a00u\\{1,7}){0,8}(?P<close>(?:[\"'`\]]\\{0,7}){0,2})"
    rb"(?P<name>[A-Za-z0-9_.$%-]{1,80}(?:(?:(?<=[yY][eE][kK]) {1,2}(?i:"
    + _WORDS_OF_KEYS
    + rb")|(?<=[eE][dD][oO][cC]) {1,2}(?i:"
    + _WORDS_OF_CODES
    + rb"))(?![A-Za-z0-9]))?)(?P<open>[\"'`]\\{0,7})?"
)
"""What precedes a value, backwards."""
_SPACE = rb"(?:[ \t]|\\+t|\xc2\xa0|\\+u00a0|\xef\xbb\xbf|\\+ufeff)"
"""A blank at the beginning of a line: a tab, a non-breaking space, a byte order mark, in a string of JSON too."""
_LINE = re.compile(
    rb"(?:^|\n|\\n|\\r|[\"'`])"
    + _SPACE
    + rb"*(?:[-+>#$]{1,3}"
    + _SPACE
    + rb"?|\d{1,6}(?:\\t|\t|:|\xe2\x86\x92|\\u2192|\|)"
    + _SPACE
    + rb"*)?"
    rb"(?:(?:export|set|-|-e|declare -x|env|local|override|define)"
    + _SPACE
    + rb")?"
    + _SPACE
    + rb"*(?:\$env:)?\Z"
)
_COMMAND_ENV = re.compile(
    rb"(?:(?:-e|--env|\benv|ENV|&&|--|[$#%])" + _SPACE + rb"|Environment=[\"']?|;|\n|\\n|^|[\"'`])" + _SPACE + rb"*\Z"
)  # fmt: skip
_LISTED = (b";", b"&", b"?", b"#", b" ", b",", b'"', b":")
"""What precedes a name in a list of settings on one line."""
_UNICODE = re.compile(rb"u[0-9a-fA-F]{4}")
_UNICODE_ESCAPE = re.compile(rb"\\+u([0-9a-fA-F]{4})")
_SIGN_ESCAPE = re.compile(rb"\\+([\"/]|(?<=\\\\)\\)")
_SETTING = (b"=", b"?=", b":=", b"::=", b"+=")
"""What is between the name and the value of a setting; in a makefile it has a second sign."""
_CAPITALS = re.compile(rb"[A-Z][A-Z0-9_]*|TF_VAR_\w+")
"""The name of a variable of a command; Terraform's have the name of its own variable behind them."""
_COMMAND_BEHIND = re.compile(rb"[.,:;?!]{0,2} [a-z./][\w./-]*")
_CONNECTION = re.compile(
    rb"(?i)"
    + WORD_START
    + rb"jdbc:|(?:(?<![\w.])|(?<=\\[nrt]))(?:server|host|hostaddr|port|data source|addr(?:ess)?|dbname|database(?:name)?|initial catalog|"
    rb"user ?(?:id|name)?|uid|driver|sslmode)\s?="
)
"""A setting beside a password in a connection string."""
_LEAST_SETTINGS = 2
_SEPARATED = re.compile(r"[^a-z0-9]")
_KEY_WORD = re.compile(r"[_-][Kk][Ee][Yy]|[a-z0-9]Key(?!s)")
"""`key` as a word of its own. In a list of `conditionKeys` are names."""
_LAST = re.compile(r"[.\s:]")
_TWO_WORDS = re.compile(
    rf"(?i)({_WORDS_OF_KEYS.decode()[::-1]})[. ]{{1,2}}(?=key)|({_WORDS_OF_CODES.decode()[::-1]})[. ]{{1,2}}(?=code)"
)
"""Words that make a secret of the next one: alone it names something else."""

_CODES = ("recoverycode", "backupcode", "scratchcode")
"""What logs in without the second factor."""
_PASSWORDS = ("password", "passwd", "pass", "passphrase", "pwd", "passcode", "psk", *_CODES)
_KEYS = tuple(
    f"{word}key"
    for word in (
        *("api", "access", "private", "auth", "signing", "encryption", "account", "shared"),
        *("master", "app", "session", "service", "secret"),
    )
)
"""Names of keys that are one word, too."""
_SECRET_KEYS = ("signingkey", "encryptionkey", "masterkey")
_ENDS = (
    *_PASSWORDS,
    *("secret", "secretkey", "token", "jwt", "credential", "credentials", "assertion", "verifier"),
    *("bearer", "auth", *_KEYS, "key", "keybase", "clientkey", "securitytoken", "appid"),
    *("sharedaccesskey", "binarysecuritytoken", "sessionid"),
)
_OWN = {
    "npmauthident": KEY,
    "devicecode": TOKEN,
    "authorizationcode": TOKEN,
    "authcode": TOKEN,
    "xamzsignature": SIGNATURE,
    "xgoogsignature": SIGNATURE,
}
"""Names that a protocol or a program has for what is a secret: a device code of OAuth, and the code of its grant, the signature of a form for an
upload, user and password of Yarn."""
_BARE = frozenset(("key", "auth", "bearer", "session", "cookie", "digest", "signature", "id"))
_HEADER_NAME = re.compile(
    rb"(?i)(?:proxy-)?authorization|(?:x|xi|dd|ocp|api|aeg|cf|private|job|deploy)-[a-z0-9-]*(?:key|token|secret|sign|auth)[a-z0-9-]*|"
    rb"apikey|x-wsse|x-hub-signature(?:-256)?|stripe-signature|x-amz-signature"
)


class Place(NamedTuple):
    """A name as it was read."""

    plain: str
    """The last part of the name, in small letters, letters and digits alone."""
    kind: str
    password: bool
    """Whether it names a password, which people make up."""
    declared: bool
    """Whether it names nothing but a secret."""
    doubtful: bool = False
    """Whether it names something else as often, so that the value has to look like a key."""
    keeps_hex: bool = False
    """Whether `0x` and digits behind it are a key: tokens and other keys are addresses and hashes as often."""

    def accepts(self, value: bytes) -> bool:
        """Say whether a value behind the name looks like a secret."""
        if self.doubtful:
            # Those of an account of Azure are base64; those of tables are often random, too.
            of_table = self.plain.startswith(("primary", "secondary"))
            return is_key_like(value) and (not of_table or value.endswith(b"="))
        return is_strong(value) or (self.keeps_hex and is_prefixed_key(value))

    @property
    def test(self) -> Callable[[bytes], bool]:
        """What a value has to pass where passwords stand alone."""
        return is_middle if self.password else self.accepts


@lru_cache(maxsize=4096)
def read_name(name: bytes) -> Place | None:
    """Say what a name names, or None where it names no secret."""
    joined = _TWO_WORDS.sub(r"\1\2_", name.decode("latin-1").rstrip("."))
    written = _LAST.split(joined)[-1]
    text = written.lower()
    plain = _SEPARATED.sub("", text)
    for suffix in ("base64", "b64", "value", "string", "binary", "1", "2"):
        if plain.endswith(suffix) and len(plain) > len(suffix):
            plain = plain[: -len(suffix)]
    again = plain.removesuffix("ation").removesuffix("confirm")
    if again.endswith(_PASSWORDS):
        plain = again
    if plain.endswith(
        ("tokens", "secrets", "passwords", "keys", "recoverycodes", "backupcodes", "scratchcodes")
    ):
        plain = plain[:-1]
    if own := _OWN.get(plain):
        return Place(plain, own, password=False, declared=True)
    if not plain.endswith(_ENDS):
        return None
    if is_harmless(written, plain):
        doubtful = is_doubtful(text)
        return (
            Place(plain, KEY, password=False, declared=False, doubtful=True) if doubtful else None
        )
    if plain in _BARE:
        return Place(plain, KEY, password=False, declared=False)
    if plain.endswith("key") and _KEY_WORD.search(written) is None and not plain.endswith(_KEYS):
        return None
    kind = TOKEN if plain.endswith(("token", "jwt", "assertion")) else KEY
    password = plain.endswith(_PASSWORDS)
    declared = (
        password
        or plain.endswith(("secret", "apikey", "secretkey", "accesskey", "privatekey"))
        or (plain.endswith("token") and plain != "token")
    )
    keeps_hex = kind == KEY and (declared or plain.endswith(_SECRET_KEYS))
    return Place(plain, kind, password=password, declared=declared, keeps_hex=keeps_hex)


def _find_assigned(context: Context, end: int, strings: Strings) -> Found | list[Found] | None:
    """Look at `NAME = VALUE` in any spelling, and at the items of a list in YAML behind the first one."""
    found = _assigned(context, end - 8, strings)
    if found is None or b"- " not in context.data[max(0, found.start - 3) : found.start]:
        return found
    if not _FIRST_ITEM.search(context.data, max(0, found.start - 48), found.start):
        return found
    items, at = [found], found.end + (context.data[found.end : found.end + 1] in (b'"', b"'"))
    for _ in range(_MOST_ITEMS):
        item = _NEXT_ITEM.match(context.data, at, found.start + _LIST_BYTES)
        if item is None:
            break
        if is_strong(item[1]):
            items.append(found._replace(start=item.start(1), end=item.end(1)))
        at = item.end()
    return items


_MAP_NAME = re.compile(rb"([A-Za-z0-9_.-]{1,80})(\\*[\"'])\s*:\s*\{\Z")
_MAP_MEMBER = re.compile(
    rb"\s{0,16}(\\*[\"'])[A-Za-z0-9_-]{1,20}\1\s{0,2}:\s{0,2}\1([^\"'\\\s]{8,4096})\1"
)
_LIST_NAME = re.compile(rb"([A-Za-z0-9_.-]{1,80})(\\*[\"'])\s*:\s*\[\Z")
_ITEM = re.compile(
    rb"(?:\s|\\n){0,16}(?:(\\*[\"'])([^\"'\\\s]{1,4096})\1|\{[^{}\[\]]{0,400}\}|[A-Za-z0-9.+-]{1,40})(?:\s|\\n){0,16}([,\]])"
)
_FIRST_ITEM = re.compile(rb"(?:\n|\\n)[ \t]{0,40}- [\"']?\Z")
_NEXT_ITEM = re.compile(
    rb"(?:\r?\n|\\n)[ \t]{0,40}- [\"']?([^\s\"'\\,#:]{1,4096})[\"']?(?=\s|\\n|\Z)"
)
_MOST_ITEMS = 64
_LIST_BYTES = 8192
"""Of a list of secrets, how much is looked at."""
_TO_NAME = {
    "attribute": rb"[\"']\\*=(?:eulav|tnetnoc)\s+[\"']\\*([A-Za-z0-9_.-]{1,80})",
    "plist": rb">gnirts<(?:\s|n\\)*>yek/<([A-Za-z0-9_.-]{1,80})",
    "yaml": rb"[\"']? :eulav(?:\s|n\\)+([A-Za-z0-9_.-]{1,80})",
    "form": rb"=eulav&([A-Za-z0-9_.-]{1,80})=eman",
    "row": rb" {1,8}\|{1,2} {0,40}([A-Za-z0-9_.-]{1,80}) {1,8}[|]",
    "configure": rb" ([A-Za-z0-9_.]{1,80}) tes erugifnoc",
    "member": rb"(?:>gnirts<)?>eulav<\s{0,8}>eman/<([A-Za-z0-9_.-]{1,80})>eman<",
    "sql": rb"[\"'] (drowssap|yb deifitnedi)",
}
"""What is between a value and its name where that precedes it in another way, and the name: read backwards, as only the end is known."""


def _find_behind(between: str, word: bytes = b"") -> "Confirm":
    """Look at a value whose name precedes it in another way.

    between: names it. word: what it is the name of; by default the name says so.
    """
    pattern = re.compile(_TO_NAME[between], re.IGNORECASE)

    def find(context: Context, end: int, strings: Strings) -> Found | None:
        data, start = context.data, end - 8
        read = pattern.match(data[max(0, start - 200) : start][::-1])
        place = read_name(word or read[1][::-1]) if read else None
        if place is None or strings.is_prompt(start, 0, member=False):
            return None
        return _plain_value(data, start, place.test)

    return find


def _find_in_list(context: Context, end: int, strings: Strings) -> list[Found] | None:
    """Look at the items of a list whose name says what is in it: `"api_keys": ["...", "..."]`."""
    data = context.data
    read = _LIST_NAME.search(data, max(0, end - 100), end)
    place = read_name(read[1]) if read else None
    if read is None or place is None:
        strings.judged = False
        return None
    if strings.is_prompt(read.start(), len(read[2]) - 1, member=True):
        return None
    found: list[Found] = []
    at, last = end, end + _LIST_BYTES
    for _ in range(_MOST_ITEMS):
        item = _ITEM.match(data, at, last)
        if item is None:
            break
        value = item[2]
        inside = _find_accepted(value, place, accepted=place.test(value)) if value else None
        if inside is not None:
            at = item.start(2)
            found.append(Found(at + inside[0], at + inside[1], place.kind, learn=True))
        if item[3] == b"]":
            break
        at = item.end()
    strings.judged = True
    return found or None


def _find_inside(context: Context, end: int, strings: Strings) -> Found | list[Found] | None:
    """Look at a list or an object whose name says what is in it."""
    find = _find_in_list if context.data[end - 1 : end] == b"[" else _find_in_map
    return find(context, end, strings)


def _find_in_map(context: Context, end: int, strings: Strings) -> Found | None:
    """Look at the first member of an object whose name says what is in it: `"tokens": {"ci": "..."}`."""
    data = context.data
    # What follows is asked first: it takes the least.
    member = _MAP_MEMBER.match(data, end, end + 4200)
    if member is None or not is_strong(member[2]):
        strings.judged = member is not None
        return None
    read = _MAP_NAME.search(data, max(0, end - 100), end)
    place = read_name(read[1]) if read else None
    if read is None or place is None or not place.accepts(member[2]):
        return None
    if strings.is_prompt(read.start(), len(read[2]) - 1, member=True):
        return None
    return Found(member.start(2), member.end(2), place.kind, learn=True)


def _find_short(context: Context, end: int, strings: Strings) -> Found | None:
    return _assigned(context, end - 6, strings)


def _find_escaped(context: Context, end: int, strings: Strings) -> Found | None:
    return _assigned(context, context.data.rfind(b'"', 0, end - 2) + 1, strings)


def _assigned(context: Context, start: int, strings: Strings) -> Found | None:
    data = context.data
    behind = data[max(0, start - 160) : start][::-1]
    read = _BACK.match(behind)
    if read is None:
        return None
    name = read["name"][::-1]
    first = start - read.end("name")
    if data[first - 1 : first] == b"\\" and name[:1] in (b"n", b"r", b"t"):
        name, first = name[1:], first + 1
    elif data[first - 1 : first] == b"\\" and (sign := _UNICODE.match(name)) is not None:
        name, first = name[sign.end() :], first + sign.end()
        if not name:
            return None
    if data[first - 1 : first] == b":" and read["sep"] == b":" and start - first == len(name) + 1:
        return None  # the name of a resource: its parts have colons between them
    if read["sep"] == b":" and not read["close"] and data.startswith(b"//", start):
        return None  # the scheme of a URL: `otpauth://`
    if data[first - 2 : first] == b"::" or data[max(0, first - 24) : first].rpartition(b"urn:")[1]:
        return None  # a class of a schema, a name of a namespace
    place = read_name(name)
    if place is None or (context.kept and name.decode("latin-1").lower() in context.kept):
        return None
    strings.judged = True
    quote = (read["quote"] or b"")[::-1]
    end = _value_end(data, start, quote, strings)
    delimited = bool(quote)
    if quote:
        start += _size_of(_BLANKS_BEFORE, data[start:end])
        end -= _size_of(_BLANKS_BEHIND, data[start:end][::-1])
    if not quote and data[first - 1 : first] == b";":
        start, end, delimited = _in_braces(data, start, end)
    elif not quote and _LINE.search(data, max(0, first - 48), first) is not None:
        start, end, delimited = _to_the_end(data, start, end)
    value = data[start:end]
    scheme, blank, rest = value.partition(b" ")
    if blank and scheme.lower() in (b"bearer", b"basic", b"token"):
        start, value = start + len(scheme) + 1, rest
    if not value:
        return None
    strings.value = value[:_JUDGED]
    one = _Assigned(
        name,
        place,
        _plain(value) if quote and b"\\" in value else value,
        quote,
        read["sep"][::-1],
        read["close"][::-1],
        data[max(0, first - 48) : first],
        tight=read.start("sep") == max(read.end("quote"), 0),
        delimited=delimited,
        runs=data[first - 1 : first] == b" " and _COMMAND_BEHIND.match(data, end) is not None,
        data=data,
        first=first,
        end=end,
    )
    member = one.is_member()
    accepted = _is_credential_in_place(one)
    if not accepted:
        if strings.is_prompt(first, len(quote) - 1, member=member):
            return None
        accepted = _is_named_secret(one)
    inside = _find_accepted(value, place, accepted=accepted)
    if inside is None:
        return None
    declared = member and place.declared
    return Found(start + inside[0], start + inside[1], place.kind, learn=True, declared=declared)


def _plain(value: bytes) -> bytes:
    """Give what a value with escapes of JSON means, for its test."""
    return _SIGN_ESCAPE.sub(rb"\1", _UNICODE_ESCAPE.sub(_decode, value))


def _decode(escape: re.Match[bytes]) -> bytes:
    return chr(int(escape[1], 16)).encode("utf-8", "surrogatepass")


_WRAPPED = re.compile(
    rb"(?:\{[\w+/=.-]{12,256}\}|\[[\w+/=.-]{12,256}\]|\([\w+/=.-]{12,256}\))(?=[&;\s\\]|\Z)"
)
"""One word between brackets."""
_CALLED = re.compile(rb" {1,32}\([^()\n;]{0,200}\);")
"""Arguments in a column of their own, in C and its like, up to the end of the statement."""


def _value_end(data: bytes, start: int, quote: bytes, strings: Strings) -> int:
    """Find where a value ends: at its quote, or at what cannot belong to it. `start` where there is none."""
    if quote:
        end = _quote_end(data, start, quote)
        if end >= 0:
            return end if data.find(b"\n", start, end) < 0 else start
    end = min(strings.run_end(start, _VALUE_FORWARD), start + MAX_VALUE)
    if end == start and (wrapped := _WRAPPED.match(data, start)) is not None:
        return wrapped.end()
    if end == start or data[end : end + 1] in (b"(", b"[", b"{"):
        return start
    if (
        data[end : end + 1] == b" "
        and _CALLED.match(data, end)
        and data[start:end].replace(b"_", b"").isalnum()
    ):
        return start
    for sign in (b"<", b">"):
        cut = data.find(sign, start, end)
        end = cut if cut >= 0 else end
    if end > start and data[end - 1] in _STOPS:
        return start + len(data[start:end].rstrip(_STOPS))
    return end


_BLANK_ESCAPES = rb"u(?:00[aA]0|20[026][0-9a-fA-F]|[fF][eE][fF][fF])"
_BLANKS_BEFORE = re.compile(
    rb"(?:\s|\\+(?:[nrt]|%s)|\xc2\xa0|\xe2\x80[\x80-\xaf]|\xe2\x81\xa0|\xef\xbb\xbf)*"
    % _BLANK_ESCAPES
)
_BLANKS_BEHIND = re.compile(
    rb"(?:\s|[nrt]\\+|(?:0[aA]00|[0-9a-fA-F][026]02|[fF][fF][eE][fF])u\\+|\xa0\xc2|[\x80-\xaf]\x80\xe2|\xa0\x81\xe2|\xbf\xbb\xef)*"
)
"""Blanks behind a value, read backwards."""
_SIGNS = rb"[\s{}\[\]()<>|$*%#@&,;!?^'\"`/]"
_CODED_SIGNS = rb"%(?:0[9aAdD]|2[0-9aAcCfF]|3[bBcCeEfF]|40|5[bBdDeE]|60|7[b-dB-D])"
_SIGNS_BEFORE = re.compile(
    rb"(?:%s|%s|\\+(?:[nrt\"'/]|%s))*+(?:[0-9]{1,20}+(?:[|:;,~#]|%%7[cC]|%%3[aAbB]))?"
    % (_CODED_SIGNS, _SIGNS, _BLANK_ESCAPES)
)
_SIGNS_BEHIND = re.compile(
    rb"(?:(?:[aAdD9]0|[0-9aAcCfF]2|[bBcCeEfF]3|04|[bBdDeE]5|06|[b-dB-D]7)%%|%s\\*)*+(?:[0-9]{1,20}+(?:[|:;,~#&]|[cC]7%%|[aAbB]3%%))?"
    % _SIGNS
)
"""Read backwards."""
_TEMPLATES = (b"${", b"{{", b"%(", b"$(", b"<%", b"#{", b"@{", b"{%", b"//", b"%7B%7B", b"$%7B")
"""How what is filled in later begins, and an address."""


def _size_of(pattern: re.Pattern[bytes], text: bytes) -> int:
    """Give how many bytes of the beginning of a text are of a pattern."""
    found = pattern.match(text)
    return found.end() if found is not None else 0


def _find_inner(value: bytes, place: Place) -> tuple[int, int] | None:
    """Find a value that has signs around it, or a number beside it: braces of a GUID, slashes, the time when it ends.

    Signs are those of templates, paths and patterns, too: what is between them has to be random.
    """
    if place.plain in _BARE or place.doubtful or value.startswith(_TEMPLATES):
        return None
    value = value[:_JUDGED]
    first = _size_of(_SIGNS_BEFORE, value)
    last = len(value) - _size_of(_SIGNS_BEHIND, value[::-1])
    inner = value[first:last]
    # With escapes in it the value is looked at again, once they are undone.
    if len(inner) == len(value) or b"%" in inner or b"\\" in inner or not is_strong(inner):
        return None
    # One of several parts of a path is no secret.
    is_path = b"/" in inner and value[:1] in (b"/", b"%")
    return None if is_path else (first, last)


def _find_accepted(value: bytes, place: Place, *, accepted: bool) -> tuple[int, int] | None:
    """Find what is secret of a value: what is between its signs, if that is a token which has a placeholder of its own in that of the value.

    accepted: whether the value passes the test of its place.
    """
    inner = _find_inner(value, place)
    if accepted and (inner is None or inner not in find_tokens(value)):
        return 0, len(value)
    return inner


_MOST_ESCAPED = 32


def _quote_end(data: bytes, start: int, quote: bytes) -> int:
    """Find the quote that ends a value, -1 where there is none; one that is escaped is a part of it."""
    stop, depth = start + MAX_VALUE, len(quote)
    end = data.find(quote, start, stop)
    if quote[-1:] != b'"':
        return end
    for _ in range(_MOST_ESCAPED):
        if end < 0:
            break
        sign = end + depth - 1
        escapes = sign - start - len(data[start:sign].rstrip(b"\\"))
        if escapes % (2 * depth) == depth - 1:
            return sign - depth + 1
        end = data.find(quote, sign + 1, stop)
    return end


_BRACED = re.compile(rb"\{([^{}\n\"'\\]{8,256})\}(?=[;\"'\s\\]|\Z)")
_NEXT_SETTING = re.compile(rb"[;&,][A-Za-z][\w.-]*=")
_STOPS = b".,:;?!"
_JUDGED = 512
"""Bytes of a value by which it is told from others: a test reads no more."""
_TO_THE_END = re.compile(rb"[^\s\"'\\`]{12,256}+(?=[ \t]*(?:\r?\n|\\[nr]|[\"'\\]|\Z))")


_LINE_SIGNS = re.compile(rb"[\r\n]|\\[nr]")


def _connects(data: bytes, first: int, end: int) -> bool:
    """Say whether a name and its value are in a connection string: other settings of one are beside them, and no comma as in a call."""
    if data[end : end + 1] in (b")", b",") or data[first - 2 : first].strip() == b",":
        return False
    before = _LINE_SIGNS.split(data[max(0, first - 200) : first])[-1]
    behind = _LINE_SIGNS.split(data[end : end + 120], maxsplit=1)[0]
    found = {one[0].lower() for part in (before, behind) for one in _CONNECTION.finditer(part)}
    return b"jdbc:" in found or len(found) >= _LEAST_SETTINGS


def _in_braces(data: bytes, start: int, end: int) -> tuple[int, int, bool]:
    """Give where a value begins and ends that is in braces, as in a string of ODBC, and whether it is; else what was given."""
    braced = _BRACED.match(data, start) or _BRACED.match(data, start - 1)
    return (braced.start(1), braced.end(1), True) if braced else (start, end, False)


def _to_the_end(data: bytes, start: int, end: int) -> tuple[int, int, bool]:
    """Give where a value begins and ends that fills its line, and whether it does; else what was given."""
    line = _TO_THE_END.match(data, start)
    # In a list of settings another one follows.
    if line is None or _NEXT_SETTING.search(line[0]) or not is_generated(line[0]):
        return start, end, False
    return start, line.end(), True


class _Assigned(NamedTuple):
    """A name and its value, in any spelling."""

    name: bytes
    place: Place
    value: bytes
    """With the characters that `\\u` escapes mean; the digits of an escape would read as random."""
    quote: bytes
    separator: bytes
    close: bytes
    """The quote behind the name."""
    before: bytes
    """What precedes the name."""
    tight: bool
    """Whether no blank is between the sign and the value."""
    delimited: bool
    """Whether it is plain where the value ends, whatever signs it has: at a quote, a brace, or the end of the line."""
    runs: bool
    """Whether a blank is before the name, and a command may be behind the value, as in a line of crontab."""
    data: bytes
    """The text."""
    first: int
    """Where the name begins."""
    end: int
    """Where the value ends."""

    def is_member(self) -> bool:
        """Say whether it is written as a member of JSON."""
        quoted = self.quote.endswith(b'"') and self.quote == self.close
        return quoted and self.separator == b":"

    def connects(self) -> bool:
        """Say whether it is the password of a connection string."""
        return self.place.password and _connects(self.data, self.first, self.end)

    def is_generated(self) -> bool:
        """Say whether the value ends plainly, and was drawn at random, whatever signs it has."""
        return self.delimited and is_generated(self.value)


@lru_cache(maxsize=4096)
def _is_variable(name: bytes) -> bool:
    return _CAPITALS.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _is_header_name(name: bytes) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None


def _is_credential_in_place(one: _Assigned) -> bool:
    """Say whether a value is in a place that exists for credentials, and may be one: in any text."""
    name, place, value = one.name, one.place, one.value
    bare = not one.close
    capitals = _is_variable(name)
    line = bare and _LINE.search(one.before) is not None
    if capitals and one.separator == b"=" and one.tight and bare:
        # A line of settings, a variable of a command.
        long = b"_" in name or len(name) >= len("SSHPASS")
        if long and (line or one.runs or _COMMAND_ENV.search(one.before)):
            if one.is_generated():
                return True
            if place.password:
                return is_loose(value)
            return place.accepts(value) or (not place.doubtful and is_middle(value))
    if capitals and one.before.endswith(b"$env:") and b"_" in name:
        # A variable of PowerShell, which is set with blanks and quotes.
        return one.is_generated() or place.test(value)
    if _is_header_name(name) and is_strong(value):
        return True
    if _is_of_packages(one):
        return True
    if "secretaccesskey" in place.plain or place.plain in ("sessiontoken", "securitytoken"):
        return len(value) >= 32 and is_random(value) and is_strong(value)
    if not bare or one.quote:
        return False
    # Two words with a blank between them are those of a sentence as well.
    if line and place.plain not in _BARE and b" " not in name:
        setting = one.separator == b"=" or (capitals and one.separator in _SETTING)
        if (setting or place.password) and one.is_generated():
            return True
        return place.test(value) if setting else place.accepts(value)
    if one.separator == b"=" and one.tight and one.before[-1:] in _LISTED and b" " not in name:
        # A connection string, a query, words of libpq.
        return one.is_generated() or place.test(value) or (one.connects() and is_loose(value))
    return False


_AUTH = frozenset((b"auth", b"_auth", b"npmauthident"))
"""Names of user and password, in base64, in files of Docker, npm and Yarn; npm's may be without its registry."""
_REGISTRY_TOKENS = frozenset((b"npmauthtoken", b"identitytoken", b"registrytoken"))
_IDENT = re.compile(rb"[^\s:]{1,128}:([^\s:]{1,512})")


def _is_of_packages(one: _Assigned) -> bool:
    """Say whether a value is a credential of a file of a package manager or of Docker, which writes them with blanks and quotes, too."""
    name = one.name.lower()
    if name in _AUTH:
        ident = _IDENT.fullmatch(one.value) if name == b"npmauthident" else None
        return is_basic(one.value) or (ident is not None and is_loose(ident[1]))
    # `//registry.example/:_password = "..."`: nothing but npm writes names like that.
    return (name in _REGISTRY_TOKENS or one.before.endswith(b"/:")) and one.place.test(one.value)


def _is_named_secret(one: _Assigned) -> bool:
    """Say whether a value in a field is a secret: its name says so, and it looks like one."""
    place, value = one.place, one.value
    if place.plain not in _BARE and one.is_generated():
        return True
    if one.is_member() and place.declared:
        return is_declared(value, password=place.password)
    if place.plain in _BARE and not one.is_member():
        return place.plain == "auth" and is_basic(value)
    return place.accepts(value)


# ---- other places --------------------------------------------------------------------------------

_PAIR_VALUE = re.compile(
    rb"(?:\s|\\+n)*(?:\\*[\"'](?:[Vv]alue|ParameterValue|content)\\*[\"']\s*[:=]\s*)?(\\*[\"'])((?:(?:[Bb]earer|[Bb]asic|[Tt]oken) )?)([^\"'\\\s]{8,4096})\1"
)
_PAIR_FAR = re.compile(
    rb"[^{}]{0,200}?\\*[\"'](?:[Vv]alue|ParameterValue)\\*[\"']\s*[:=]\s*(\\*[\"'])()([^\"'\\\s]{8,4096})\1"
)
_PAIR_OPENED = re.compile(rb"(?:\s|\\+n)*(?:\\*[\"'][Vv]alue\\*[\"']\s*:\s*)?(?:(?=(\[))|\\*[\"'])")
_SESSIONS = frozenset(
    (b"session", b"sessionid", b"session_id", b"sid", b"connect.sid", b"phpsessid", b"jsessionid")
)
_PAIR_NAME = re.compile(rb"(?:\s|n\\+)*[\"']\\*([A-Za-z0-9_. -]{1,80})([\"']\\*)")
"""A name in quotes, read backwards from what is behind it."""
_MEMBER_NAME = re.compile(
    rb"(\\*[\"'])(?:Parameter)?(?:[Nn]ame|[Kk]ey)\1(?:\s|\\+n){0,8}:(?:\s|\\+n){0,8}\1\Z"
)
_BEFORE = re.compile(
    rb"alue(\\*[\"'])\s{0,8}:\s{0,8}\1((?:(?:[Bb]earer|[Bb]asic|[Tt]oken) )?)([^\"'\\]{8,4096})\1(?:\s|\\+n){0,40},[^{}]{0,400}\Z"
)
_OBJECT = 4800
"""Bytes of an object in which its value is looked for before its name."""


def _find_pair(context: Context, end: int, strings: Strings) -> Found | list[Found] | None:
    """Look at a name that is a value itself: `"name": "TOKEN", "value": "..."`, `["X-Api-Key", "..."]`."""
    return _find_by_name(context, end, context.data.rfind(b",", 0, end), strings)


def _find_reversed(context: Context, end: int, strings: Strings) -> Found | list[Found] | None:
    """Look at `"value": "...", "name": "TOKEN"` at the end of an object."""
    return _find_by_name(context, end, end - 1, strings)


def _find_by_name(
    context: Context, end: int, name_end: int, strings: Strings
) -> Found | list[Found] | None:
    data = context.data
    strings.judged = False
    read = _PAIR_NAME.match(data[max(0, name_end - 200) : name_end][::-1])
    if read is None:
        return None
    name, quote = read[1][::-1], read[2][::-1]
    opened_at, name_at = name_end - read.end(2), name_end - read.end(1)
    place = read_name(name)
    header = _is_header_name(name)
    cookies = name.lower() in (b"cookie", b"set-cookie")
    session = name.lower() in _SESSIONS and data.find(b"omain", end, end + 5000) >= 0
    if place is None and not header and not cookies and not session:
        return None
    strings.judged = True
    own = header or cookies or session
    if not own and strings.is_prompt(name_at - 1, len(quote) - 1, member=True):
        return None
    found: re.Match[bytes] | None = None
    if data[end - 1 : end] == b",":
        if cookies:
            opened = _PAIR_OPENED.match(data, end, end + 200)
            find = _cookies_listed if opened is not None and opened[1] else _cookies_behind
            if opened is not None and (some := find(data, opened.end())):
                return some
        else:
            found = _PAIR_VALUE.match(data, end, end + 4400) or _PAIR_FAR.match(
                data, end, end + 4400
            )
    if found is None:
        found = _find_before(data, opened_at, quote)
        if found is not None and cookies:
            return _cookies_behind(data, found.start(2))
    if found is None or cookies:
        return None
    value = strings.value = found[3]
    accepted = place.accepts(value) if place is not None and not own else is_strong(value)
    if accepted or (found[2].lower().startswith(b"basic") and is_basic(value)):
        return Found(found.start(3), found.end(3), KEY, learn=True)
    inside = _find_inner(value, place) if place is not None else None
    if inside is None:
        return None
    return Found(found.start(3) + inside[0], found.start(3) + inside[1], KEY, learn=True)


def _find_before(data: bytes, start: int, quote: bytes) -> re.Match[bytes] | None:
    """Find the value that precedes its name in an object."""
    if _MEMBER_NAME.search(data, max(0, start - 60), start + len(quote)) is None:
        return None
    at = data.rfind(b"alue" + quote, max(0, start - _OBJECT), start)
    return _BEFORE.match(data, at, start) if at >= 0 else None


def _find_flag(context: Context, end: int, strings: Strings) -> Found | None:
    """Look at `--token VALUE`."""
    data, start = context.data, end - 8
    before = data[max(0, start - 80) : start]
    name = before[before.rfind(b"--") + 2 :].rstrip(b"\"' ")
    place = read_name(name)
    if place is None or (
        strings.is_prompt(start, 0, member=False) and name not in (b"oauth2-bearer",)
    ):
        return None
    return _plain_value(data, start, place.accepts)


def _first(
    found: re.Match[bytes] | None, test: Callable[[bytes], bool], kind: str = KEY
) -> Found | None:
    """Give the first group of what was found, if it passes a test."""
    if found is None or not test(found[1]):
        return None
    return Found(found.start(1), found.end(1), kind, learn=True)


def _plain_value(data: bytes, start: int, test: Callable[[bytes], bool]) -> Found | None:
    found = _VALUE_PLAIN.match(data, start, start + MAX_VALUE)
    if found is None:
        return None
    value = found[0].rstrip(b".,:;?!")
    if not test(value):
        return None
    return Found(start, start + len(value), KEY, learn=True)


_ELEMENT = re.compile(rb"<(?:\w+:)?([\w.-]{1,60})(?:\s[^<>]*)?>")
_LONGEST_ELEMENT = 300


def _find_xml(context: Context, end: int, strings: Strings) -> Found | None:
    """Look at the text of an element."""
    data, start = context.data, end - 8
    before = data[max(0, start - _LONGEST_ELEMENT) : start].removesuffix(b"<![CDATA[").rstrip()
    at = before.rfind(b"<")
    read = _ELEMENT.fullmatch(before, at) if at >= 0 else None
    if read is None:
        return None
    place = read_name(read[1])
    own = b"wsse:" in read[0] or read[1] in (b"SecretAccessKey", b"SessionToken")
    if read[1] in (b"sessionId", b"BinarySecurityToken", b"Nonce"):
        place = place or Place("session", TOKEN, password=False, declared=True)
    if place is None:
        return None
    if not own and strings.is_prompt(start, 0, member=False) and not place.password:
        return None
    return _plain_value(data, start, place.test)


_BLANK_OF_ENTRY = rb"(?:\s|\\+[nrt])"
_BLANKS = rb"%s{1,12}+" % _BLANK_OF_ENTRY
_MARKS_OF_LINE = rb"(?:[ \t>|*+#-]|\xe2\x94[\x82\x83]|\\+(?:u250[23]|t))"
_LINE_NUMBER = rb"(?:[^\s\\\"':]{1,100}[:-])?L?\d{1,7}(?:[:|)\t -]|\xe2\x86\x92|\\+(?:u2192|t))"
_LINE_START = rb"(?:\A|\n|\\n)%s*+(?:%s%s*+)?" % (_MARKS_OF_LINE, _LINE_NUMBER, _MARKS_OF_LINE)
"""What tools write before a line: its number, also behind the name of the file, the sign of a diff, of a quote or of a table."""
_TO_NEXT = rb"(?:%s{0,6}%s|%s)" % (_BLANK_OF_ENTRY, _LINE_START, _BLANKS)
"""What is between two words of an entry."""
_NETRC = re.compile(
    rb"login%s\S{1,64}?%spassword%s([^\s\"\\]{6,256})" % (_BLANKS, _TO_NEXT, _BLANKS)
)
_ENTRY = re.compile(
    rb"%s(?:machine%s([^\s\\]{1,255})|default)%s\Z" % (WORD_START, _BLANKS, _TO_NEXT)
)
"""What precedes the login of an entry: its machine."""
_BEGINS_LINE = re.compile(_LINE_START)


def _find_netrc(context: Context, end: int, _strings: Strings) -> Found | None:
    data = context.data
    at = data.rfind(b"login", max(0, end - 240), end)
    if at < 0:
        return None
    entry = _ENTRY.search(data, max(0, at - 300), at)
    if entry is None:
        # Without one, as where an entry is shown in part, it has to begin its line.
        line = max(data.rfind(sign, max(0, at - 160), at) for sign in (b"\n", b"\\n"))
        if (line < 0 and at > 160) or not _BEGINS_LINE.fullmatch(data, max(line, 0), at):
            return None
    # Without a dot the name of a machine may be a word of a sentence.
    machine = entry[1] if entry is not None else None
    words = machine is not None and not any(sign in machine for sign in (b".", b":", b"localhost"))
    return _first(_NETRC.match(data, at, end + 300), is_strong if words else is_loose)


_CURL_USER = re.compile(
    rb"(?:(?:(?<![\w-])|(?<=\\[nrt]))-[0-46BGIJLMNORSZafgijklnpqsv#]{1,9}[uU]|-[uU]|--user|--proxy-user|-a|--auth)(?:[ =]|\\*[\"'], ?)?(?:\\*[\"'])?([A-Za-z0-9_.@%+-]{0,128}):([^\s\"'\\:/]{0,512})(?=[\s\"'\\]|\Z)"
)
_CURL_QUOTED = re.compile(
    rb"(?:(?:(?<![\w-])|(?<=\\[nrt]))-[uUa]|--user|--proxy-user|--auth)(?:[ =]|\\*[\"'], ?)(\\*[\"'])[A-Za-z0-9_.@%+-]{1,128}:([^\"'\\\n]{1,256}[ :/][^\"'\\\n]{1,256})\1"
)
"""With a blank, a colon or a slash in the password."""
_CURL_COOKIE = re.compile(
    rb"(?:(?:-b|--cookie) ?(\\*[\"'])(?:, ?\1)?|(?:(?<![\w-])|(?<=\\[nrt]))(?:-b|--cookie)[ =])(?=[A-Za-z0-9_.-]{1,64}=)"
)
_WORD_END = re.compile(rb"[\s\"'\\]|\Z")
_CURL = 400
_LINE_END = re.compile(rb"(?<!\\)(?:\r?\n|\\n)")
"""Of a command, if no quote is open; not where it goes on behind a backslash."""


def _find_curl(context: Context, end: int, _strings: Strings) -> Found | list[Found] | None:
    data = context.data
    stop = end + _CURL
    if data.find(b"-", max(0, end - 9), stop) < 0:
        return None
    again = data.find(b"curl ", end, stop)
    if again >= 0:
        stop = again
    for line in _LINE_END.finditer(data, end, stop):
        before = data[end : line.start()]
        if before.count(b"'") % 2 == 0 and before.count(b'"') % 2 == 0:
            stop = line.start() + 1
            break
    quoted = _CURL_QUOTED.search(data, max(0, end - 9), stop)
    if quoted is not None and is_loose(quoted[2].replace(b" ", b"")):
        return Found(quoted.start(2), quoted.end(2), KEY, learn=True)
    found = _CURL_USER.search(data, max(0, end - 9), stop)
    if found is not None:
        if found[2]:
            if is_loose(found[2]) and not is_placeholder(found[1]):
                return Found(found.start(2), found.end(2), KEY, learn=True)
        elif is_strong(found[1]):
            return Found(found.start(1), found.end(1), KEY, learn=True)
    cookie = _CURL_COOKIE.search(data, end, stop)
    if cookie is None:
        return None
    if cookie[1]:
        return _cookies_behind(data, cookie.end())
    word = _WORD_END.search(data, cookie.end(), cookie.end() + 4096)
    return _cookies_between(data, cookie.end(), word.start() if word else cookie.end() + 4096)


_LEAST_USER = 16
_USERINFO = re.compile(
    rb"""://(?:(?P<user>[^\s/?#"'<>@\\:]*):(?P<password>[^\s/?#"'<>\\]*)|(?P<alone>[A-Za-z0-9_.~%-]{16,}))@"""
)


_RAW_USERINFO = re.compile(
    rb"""://[^\s/?#"'<>@\\:]{1,64}:(?!\d{1,5}[/?#])(?P<password>[^\s"'<>@\\]{6,128})@[A-Za-z0-9]"""
)
"""With a sign in the password that would have to be encoded."""


def _find_userinfo(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at the user and the password of a URL; the last `@` before the path ends them."""
    data = context.data
    if "userinfo" in context.kept_formats:
        return None
    at = data.rfind(b"://", max(0, end - 300), end)
    found = _USERINFO.match(data, at, end + 300) if at >= 0 else None
    if found is None:
        raw = _RAW_USERINFO.match(data, at, end + 300) if at >= 0 else None
        if raw is None or raw.end() <= end or not is_middle(raw["password"]):
            return None
        return Found(*raw.span("password"), SECRET, True)
    value = unquote_to_bytes(found["password"] or b"")
    if value and b" " not in value and (is_loose(value) or is_middle(value) or is_strong(value)):
        return Found(*found.span("password"), SECRET, True)
    # A token as the user: alone, or with a password that says nothing (`x-oauth-basic`), or none.
    name = "user" if found["alone"] is None else "alone"
    if len(found[name]) < _LEAST_USER or b"%" in found[name] or not is_strong(found[name]):
        return None
    return Found(*found.span(name), SECRET, True)


def _find_bearer(context: Context, end: int, _strings: Strings) -> Found | None:
    if "bearer" in context.kept_formats:
        return None
    found = _plain_value(context.data, end - 12, is_strong)
    return found._replace(kind=SECRET) if found else None


_BASIC = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def _find_basic(context: Context, end: int, _strings: Strings) -> Found | None:
    data, start = context.data, end - 12
    found = _BASIC.match(data, start, start + 4096)
    if found is None or "basic" in context.kept_formats or not is_basic(found[0]):
        return None
    return Found(start, found.end(), SECRET, learn=True)


_SCHEME_VALUE = re.compile(
    rb"(?i)(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))authorization(?:\\*[\"'])?\s*[:=]?\s*(?:\\*[\"'])?(?:[A-Za-z][A-Za-z0-9-]{1,24} )?(?:[a-z]+=)?([A-Za-z0-9_./+=~!:@$-]{12,4096})"
)


def _find_authorization(context: Context, end: int, strings: Strings) -> Found | list[Found] | None:
    data = context.data
    if parameters := find_in_authorization(data, end):
        return parameters
    at = max(0, end - 40)
    found = _SCHEME_VALUE.search(data, at, end + 4096)
    if found is None:
        return None
    value = found[1]
    if is_basic(value) if b"basic" in found[0].lower() else is_strong(value):
        return Found(found.start(1), found.start(1) + len(value), AUTHORIZATION, learn=True)
    return None


_COOKIES = re.compile(rb"([A-Za-z0-9_.$-]{1,64})=([^\s;\"'\\,]{12,4096})")


_OPENED = re.compile(rb" ?\\{0,7}[\"']")
"""What may be between the name of a field and its cookies."""
_LIST_OPENED = re.compile(rb"(?:\s|\\+[nrt]){0,64}(?=(\[|- ))")
"""The same where the field has a list of values."""
_LIST_VALUE = re.compile(rb"(?:[\s,\[]|\\+[nrt]){0,64}(- )?(\\*[\"'])?")
"""What is before a value in such a list: of JSON, of Python, of YAML."""
_LISTED_COOKIES = 32 * 1024
"""Of a list of cookies, how much is looked at."""


def _find_cookie(context: Context, end: int, _strings: Strings) -> list[Found]:
    """Look at the long values of a line of cookies, or of each one in a list of them."""
    data = context.data
    listed = _LIST_OPENED.match(data, end)
    if listed is not None:
        return _cookies_listed(data, listed.start(1))
    opened = _OPENED.match(data, end)
    return _cookies_behind(data, opened.end() if opened else end)


def _cookies_behind(data: bytes, start: int) -> list[Found]:
    """Look at the long values of cookies up to the end of their line or string."""
    stop = min(len(data), start + 4096)
    for mark in (b"ookie", b"\n", b"\\n", b"\\r", b'"', b"'"):
        cut = data.find(mark, start, stop)
        stop = cut if cut >= 0 else stop
    return _cookies_between(data, start, stop)


def _cookies_listed(data: bytes, start: int) -> list[Found]:
    """Look at the long values of the cookies in a list of strings, as frameworks and gateways write a field that may come twice."""
    found: list[Found] = []
    at, last = start, min(len(data), start + _LISTED_COOKIES)
    for _ in range(_MOST_ITEMS):
        item = _LIST_VALUE.match(data, at, last)
        if item is None or not (item[1] or item[2]):
            break
        if item[2]:
            stop = _quote_end(data, item.end(), item[2])
        else:
            line = _LINE_SIGNS.search(data, item.end(), last)
            stop = line.start() if line else last
        if not 0 <= stop < last:
            stop = last
        found += _cookies_between(data, item.end(), stop)
        at = stop + len(item[2] or b"")
    return found


def _cookies_between(data: bytes, start: int, stop: int) -> list[Found]:
    return [
        Found(found.start(2), found.end(2), COOKIE, learn=True)
        for found in _COOKIES.finditer(data, start, stop)
        if is_strong(found[2])
    ]


_JAR = re.compile(rb"(?:\\t|\t)\d{1,12}(?:\\t|\t)[^\s\\]{1,64}(?:\\t|\t)([^\s\"\\]{12,4096})")


def _find_jar(context: Context, end: int, _strings: Strings) -> Found | None:
    return _first(_JAR.match(context.data, end, end + 4200), is_strong, COOKIE)


_LEAST_SIGNATURE = 27
"""Of SHA-1 in base64, as S3 has it in version 2."""
_SIGNED = re.compile(rb"[A-Za-z0-9%+/=_~-]+")


def _find_signature(context: Context, end: int, _strings: Strings) -> Found | None:
    data, start = context.data, end - _LEAST_SIGNATURE
    found = _SIGNED.match(data, start, start + 4096)
    if found is None or not (is_hex(found[0]) or is_random(found[0])):
        return None
    return Found(start, found.end(), SIGNATURE, learn=False)


_PGPASS = re.compile(
    rb":\d{2,5}:[^:\s]{1,64}:[^:\s]{1,64}:((?:[^\s\"\\:]|\\+[:\\]){8,256})(?=[\s\"\\]|\Z)"
)


def _find_pgpass(context: Context, end: int, _strings: Strings) -> Found | None:
    data = context.data
    at = data.rfind(b":5432:", max(0, end - 8), end)
    return _first(_PGPASS.match(data, at, at + 500) if at >= 0 else None, is_loose)


_WILD_PGPASS = re.compile(
    rb"(?:^|[\s\"'>]|\\n)[A-Za-z0-9_.*/-]{1,255}:\*:[^:\s\"]{1,64}:[^:\s\"]{1,64}:((?:[^\s\"\\:]|\\+[:\\]){8,256})(?=[\r\n\"\\]|\Z)"
)


def _find_wild_pgpass(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at a line of .pgpass for all ports."""
    data = context.data
    signs = (b"\n", b"\\n", b'"', b"'", b" ")
    at = max(data.rfind(sign, max(0, end - 260), end) for sign in signs)
    return _first(_WILD_PGPASS.match(data, max(at, 0), end + 400), is_loose)


_SPACED = re.compile(rb"(?:ENV|set -[xgU]+|setenv) ([A-Z][A-Z0-9_]*) (?:\\*[\"'])?\Z")


def _find_spaced(context: Context, end: int, _strings: Strings) -> Found | None:
    data, start = context.data, end - 8
    read = _SPACED.search(data, max(0, start - 100), start)
    place = read_name(read[1]) if read else None
    if place is None:
        return None
    return _plain_value(data, start, is_loose if place.password else place.accepts)


_ORACLE = re.compile(rb"thin:[^\s/:]{1,64}/([^\s@]{6,256})@")


def _find_oracle(context: Context, end: int, _strings: Strings) -> Found | None:
    return _first(_ORACLE.match(context.data, end - 5, end + 400), is_loose)


_JAAS = re.compile(rb'required[^;\n]{0,200}?password=\\*"([^"\\]{6,256})\\*"')


def _find_jaas(context: Context, end: int, _strings: Strings) -> Found | None:
    return _first(_JAAS.match(context.data, end - 9, end + 500), is_loose)


_TERRAFORM = re.compile(
    rb'credentials \\*"[^"\n]{1,100}?\\*" \{[^{}]{0,100}?token\s*=\s*\\*"([^"\\]{12,400})\\*"'
)


def _find_terraform(context: Context, end: int, _strings: Strings) -> Found | None:
    at = context.data.rfind(b"credentials", 0, end)
    return _first(_TERRAFORM.match(context.data, at, end + 700), is_strong, TOKEN)


_PART = re.compile(rb'\]?["\']?[ \t]*(?:;[^\r\n]*)?\r?\n(?:[^\r\n]+\r?\n)*\r?\n')
_PART_NAME = re.compile(
    rb"""(?<=[;\s])name\*?[ \t]*=[ \t]*(?:["']|[\w-]{1,20}'[\w-]{0,20}')?([^"'\r\n;]{1,100})\Z""",
    re.IGNORECASE,
)
"""In any spelling that a server reads: blanks, either quote or none, with a character set before it (RFC 5987)."""
_PART_END = re.compile(rb"\r?\n--")


def _find_part(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at a part of a multipart body."""
    data = context.data
    read = _PART_NAME.search(data, max(0, end - 110), end - 1)
    head = _PART.match(data, end - 1, end + 1000)
    place = read_name(read[1]) if read else None
    if (
        place is None
        or head is None
        or read is None
        or read[1].decode("latin-1").lower() in context.kept
    ):
        return None
    start = head.end()
    stop = _PART_END.search(data, start, start + MAX_VALUE)
    value = data[start : stop.start() if stop else min(len(data), start + MAX_VALUE)]
    accepted = is_loose(value) if place.declared else place.accepts(value)
    inside = _find_accepted(value, place, accepted=accepted)
    if inside is None:
        return None
    return Found(start + inside[0], start + inside[1], place.kind, True, place.declared)


Confirm = Callable[[Context, int, Strings], Found | list[Found] | None]

NAMED: tuple[tuple[Head, Confirm], ...] = (
    (Head(_ASSIGN, caseless=True), _find_assigned),
    (Head(_SHORT, caseless=True), _find_short),
    (Head(_ESCAPED, caseless=True), _find_escaped),
    (Head(_WHITE_FIRST, caseless=True), _find_assigned),
    (Head(_MAP, caseless=True), _find_inside),
    (Head(_ATTRIBUTE, caseless=True), _find_behind("attribute")),
    (Head(_PLIST, caseless=True), _find_behind("plist")),
    (Head(_YAML, caseless=True), _find_behind("yaml")),
    (Head(_FORM, caseless=True), _find_behind("form")),
    (Head(_ROW, caseless=True), _find_behind("row")),
    (Head(_CONFIGURE), _find_behind("configure")),
    (Head(_LAST_IN_OBJECT, caseless=True, once=True), _find_reversed),
    (Head(_SQL, caseless=True), _find_behind("sql", word=b"password")),
    (Head(_PAIR, caseless=True), _find_pair),
    (Head(_FLAG, caseless=True), _find_flag),
    (Head(_XML, caseless=True), _find_xml),
    (
        Head(r"login(?:\s|\\n|\\t){1,4}\S{1,64}(?:\s|\\n|\\t)[^\"'<{}=]{0,128}password"),
        _find_netrc,
    ),
    (Head(r"""curl(?: |\\{0,3}["'],)"""), _find_curl),
    (Head("https? (?:-a|--auth)[ =]"), _find_curl),
    (COMMAND, find_in_command),
    (Head("""://[^\\s/?#"'<>@\\\\]{3,255}@"""), _find_userinfo),
    (Head("""://[^\\s/?#"'<>@\\\\:]{1,64}:[^\\s"'<>@\\\\]{3,128}@"""), _find_userinfo),
    (Head("bearer [A-Za-z0-9._~+/=:|-]{12}", caseless=True), _find_bearer),
    (Head("basic [A-Za-z0-9+/]{12}", caseless=True), _find_basic),
    (
        Head(
            "authorization(?:\\\\{0,7}[\"'])?\\s{0,2}[:=]\\s{0,2}(?:\\\\{0,7}[\"'])?[A-Za-z0-9]",
            caseless=True,
        ),
        _find_authorization,
    ),
    (HEADER_LINE, find_in_header_line),
    (
        Head(
            "(?:^|[^a-z]|\\\\[nrt])(?:set-)?cookie[2s]?\\\\{0,7}[\"']? ?[:=] ?[\"']?", caseless=True
        ),
        _find_cookie,
    ),
    (
        Head(r"(?:\t|\\t)(?:TRUE|FALSE)(?:\t|\\t)[/A-Za-z0-9]{1,40}(?:\t|\\t)(?:TRUE|FALSE)"),
        _find_jar,
    ),
    (Head(f"signature=[A-Za-z0-9%+/=_~-]{{{_LEAST_SIGNATURE}}}", caseless=True), _find_signature),
    (Head(":5432:"), _find_pgpass),
    (Head(":[*]:"), _find_wild_pgpass),
    (
        Head(
            "(?:ENV|set -[xgU]{1,3}|setenv) [A-Z][A-Z0-9_]{0,60}(?:PASS|PASSWORD|PASSWD|PWD|SECRET|TOKEN|KEY) [\"']?"
            + _V
            + "{8}"
        ),
        _find_spaced,
    ),
    (Head("thin:"), _find_oracle),
    (Head("LoginModule required "), _find_jaas),
    (
        Head(
            'form-data[ \\t]{0,3};[^\\r\\n]{0,120}name[*]?[ \\t]{0,3}=[^"\\r\\n;]{0,24}["\']?[^"\'\\r\\n;]{0,40}'
            + _NAME
            + "[\"'\\]\\r\\n; \\t]",
            caseless=True,
        ),
        _find_part,
    ),
    (Head('credentials \\\\{0,3}"'), _find_terraform),
    (
        Head(
            "<name>[a-z0-9_.-]{0,30}" + _NAME + "</name>\\s{0,8}<value>(?:<string>)?" + _V + "{8}",
            caseless=True,
        ),
        _find_behind("member"),
    ),
    *MARKED,
    (COLUMN, partial(find_in_column, read_name)),
    (WEB_KEY, find_web_key),
    (QUERY_PARAMETER, find_in_query),
)
"""Heads of names and places, and who looks closer."""
REVERSED = next(at for at, (_, confirm) in enumerate(NAMED) if confirm is _find_reversed)
"""The one that is only a mark there: few texts have it, and in all the others hyperscan would look at each `name` for 0.3 us."""
REVERSED_HEAD = Head(_REVERSE, caseless=True)
"""What is to be looked for where a text has the mark; both end at the same places."""
