"""Find values that are secrets by what is elsewhere in their object, command or dialogue, whatever their own names say.

Terraform marks a value as `sensitive`, Parameter Store has a type for it, a cookie is known by its attributes, and so on. A head finds the
mark; here the value is looked for beside it.

Source: the manuals of Terraform, AWS, the az CLI, PowerShell and Vault; HAR 1.2; Playwright's storageState; the schema of ASP.NET.
"""

import re
from collections.abc import Callable

from ..credential_fields import COOKIE, KEY, SECRET
from ..looks_like_secret import (
    is_generated,
    is_hex,
    is_key_like,
    is_loose,
    is_middle,
    is_random,
    is_strong,
)
from .pattern_prefilter import Head
from .searched_text import Context, Found, Strings

Confirm = Callable[[Context, int, Strings], Found | list[Found] | None]
Test = Callable[[bytes], bool]

_LONGEST_HEAD = 120
_OBJECT = 4096
"""Bytes of an object before and behind its mark that are looked at."""
_QUOTE = "\\\\{0,7}[\"']"
_COLON = "\\s{0,4}:\\s{0,4}"
_VALUE = re.compile(rb"(\\*[\"'])[Vv]alue\1\s{0,8}:\s{0,8}\1([^\"'\s]{8,4096}?)\1")
_RESULT = re.compile(rb"(\\*[\"'])result\1\s{0,8}:\s{0,8}\1([^\"'\s]{8,4096}?)\1")


def _find_beside(
    value: re.Pattern[bytes], test: Test, *, kind: str = KEY, own: bool = False
) -> Confirm:
    """Look at a member of the object in which a mark is.

    own: whether it is a credential's own place, so that it counts in prompts, too.
    """

    def find(context: Context, end: int, strings: Strings) -> Found | None:
        data = context.data
        start = data.rfind(b"{", max(0, end - _OBJECT), end)
        if start < 0 or data.find(b"}", start, end) >= 0:
            return None
        ends = (data.find(sign, end, end + _OBJECT) for sign in (b"}", b"{"))
        stop = min((at for at in ends if at >= 0), default=min(len(data), end + _OBJECT))
        member = value.search(data, start, stop)
        if member is None or not test(member[2].rstrip(b"\\")):
            return None
        if not own and strings.is_prompt(member.start(), len(member[1]) - 1, member=True):
            return None
        return Found(*member.span(2), kind, learn=True)

    return find


def _is_password(value: bytes) -> bool:
    return is_middle(value) or is_generated(value)


def _is_long_key(value: bytes) -> bool:
    return len(value) >= 40 and value.endswith(b"=") and is_key_like(value)


def _find_result(context: Context, end: int, strings: Strings) -> Found | None:
    """Look at what a resource of a state has made: it is in a list in the object of the resource."""
    data = context.data
    stop = data.find(b"random_", end, end + _OBJECT)
    result = _RESULT.search(data, end, stop if stop >= 0 else end + _OBJECT)
    if result is None or not _is_password(result[2]):
        return None
    if strings.is_prompt(result.start(), len(result[1]) - 1, member=True):
        return None
    return Found(*result.span(2), KEY, learn=True)


_KEYS_BEFORE = re.compile(rb"(\\*[\"'])keys\1\s{0,8}:\s{0,8}\[")
_ITEM = re.compile(rb"\s{0,16}(\\*[\"'])([A-Za-z0-9+/]{40,200}={0,2})\1\s{0,16}([,\]])")
_MOST_SHARES = 32
_SHARES = 4096


def _find_shares(context: Context, end: int, _strings: Strings) -> list[Found] | None:
    """Look at the keys that unseal a Vault: a list, and the same keys in another spelling before it."""
    data = context.data
    found = _list_shares(data, end)
    for before in _KEYS_BEFORE.finditer(data, max(0, end - _SHARES), end):
        found += _list_shares(data, before.end())
    return found or None


def _list_shares(data: bytes, at: int) -> list[Found]:
    found: list[Found] = []
    for _ in range(_MOST_SHARES):
        item = _ITEM.match(data, at, at + 256)
        if item is None:
            break
        if is_random(item[2]):
            found.append(Found(*item.span(2), KEY, learn=True))
        if item[3] == b"]":
            break
        at = item.end()
    return found


def _find_value(begins: bytes, behind: bytes, test: Test, kind: str = KEY) -> Confirm:
    """Look at the first group of a pattern behind some words, in any text.

    begins: the words, in any case; a head has them once. behind: the pattern.
    """
    read, words = re.compile(behind), begins.lower()

    def find(context: Context, end: int, _strings: Strings) -> Found | None:
        first = max(0, end - _LONGEST_HEAD)
        at = context.data[first:end].lower().rfind(words)
        found = read.match(context.data, first + at + len(words)) if at >= 0 else None
        if found is None or not test(found[1]):
            return None
        return Found(*found.span(1), kind, learn=True)

    return find


def _is_secure(value: bytes) -> bool:
    return is_loose(value) or is_generated(value)


def _is_variable_secret(value: bytes) -> bool:
    return is_strong(value) or is_generated(value)


_SECRET_NAME = "(?:PASS|PASSWORD|PASSWD|PWD|SECRET|TOKEN|KEY)"
_VARIABLE = "[A-Z][A-Z0-9_]{0,60}" + _SECRET_NAME
_SETS = (b"environ[", b"env.", b"ENV[")
_ENVIRON = re.compile(
    rb"(?:environ|env|ENV)(?:\[\\*[\"'][A-Z][A-Z0-9_]*\\*[\"']\]|\.[A-Z][A-Z0-9_]*)\s{0,4}=\s{0,4}(\\*[\"'`])([^\"'`\s\\]{8,4096})\1"
)


def _find_environ(context: Context, end: int, _strings: Strings) -> Found | None:
    """Look at what a program puts into a variable of its environment that is named like a secret, in cells of notebooks too."""
    data, first = context.data, max(0, end - _LONGEST_HEAD)
    at = max(data.rfind(sets, first, end) for sets in _SETS)
    found = _ENVIRON.match(data, at) if at >= 0 else None
    if found is None or not (is_strong(found[2]) or is_generated(found[2])):
        return None
    return Found(*found.span(2), KEY, learn=True)


MARKED: tuple[tuple[Head, Confirm], ...] = (
    (Head(f"sensitive{_QUOTE}{_COLON}true"), _find_beside(_VALUE, _is_password)),
    (Head(f"[Tt]ype{_QUOTE}{_COLON}{_QUOTE}SecureString"), _find_beside(_VALUE, _is_password)),
    (
        Head(f"permissions{_QUOTE}{_COLON}{_QUOTE}(?:FULL|Full|READ|Read)"),
        _find_beside(_VALUE, _is_long_key),
    ),
    (
        Head(f"httpOnly{_QUOTE}{_COLON}[tf]"),
        _find_beside(_VALUE, _is_password, kind=COOKIE, own=True),
    ),
    (Head(f"random_password{_QUOTE}"), _find_result),
    (Head(f"keys_(?:b64|base64|hex){_QUOTE}{_COLON}\\["), _find_shares),
    (
        Head("(?:Unseal|Recovery) Key [0-9]{1,2}: "),
        _find_value(b" Key ", rb"\d{1,2}: ([A-Za-z0-9+/]{40,200}={0,2})", is_random),
    ),
    (
        Head("AWS Secret Access Key \\[[^\\]\\r\\n]{0,40}\\]: "),
        _find_value(
            b"AWS Secret Access Key [",
            rb"[^\]\r\n]{0,40}\]: ([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
            is_strong,
        ),
    ),
    (
        Head("(?:validation|decryption)Key=\\\\{0,3}[\"'][0-9A-Fa-f]{16}"),
        _find_value(b"Key=", rb"\\{0,3}[\"']([0-9A-Fa-f]{32,256})(?![0-9A-Za-z])", is_hex),
    ),
    (
        Head("ConvertTo-SecureString ", caseless=True),
        _find_value(
            b"ConvertTo-SecureString ",
            rb"(?i)(?:-String )?\\{0,3}[\"']([^\"'\s\\]{6,256})\\{0,3}[\"'] [^\r\n]{0,40}-AsPlainText",
            _is_secure,
        ),
    ),
    (
        Head(
            f"(?:environ\\[{_QUOTE}{_VARIABLE}{_QUOTE}\\]|env\\.{_VARIABLE}|ENV\\[{_QUOTE}{_VARIABLE}{_QUOTE}\\]) ?= ?\\\\{{0,7}}[\"'`][^\"'`\\s]{{8}}"
        ),
        _find_environ,
    ),
    (
        Head("azurewebsites[.]net/"),
        _find_value(
            b"azurewebsites.net/",
            rb"[^\s\"'<>?]{0,200}\?(?:[^\s\"'<>]{0,400}?&)?code=([A-Za-z0-9_%/+-]{20,200}(?:==)?)",
            is_random,
            SECRET,
        ),
    ),
)
"""Heads of marks, and who looks beside them."""
