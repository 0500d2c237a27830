"""Known formats of keys and tokens, and the words that precede a secret in any text.

Each is found in two steps, so that a text without one costs next to nothing: one automaton looks for what such
a secret begins with or is announced by, and only there a pattern is asked. A pattern that names more than it
hides has it in a group.

Source: the providers' own pages on their keys, GitHub's list of secret scanning patterns, RFC 7515 (JWT),
RFC 7468 (PEM).
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from .places import SECRET, field_kind, is_credential, is_one, is_prose


class Found(NamedTuple):
    """Where a secret stands."""

    start: int
    end: int
    kind: str
    learn: bool
    """Whether it is to be looked for elsewhere."""
    declared: bool = False
    """Whether its place says that it is one."""


class Context(NamedTuple):
    """What is known of a text that is searched."""

    data: bytes
    final: bool
    """False where it goes on, or was cut: a secret may end with it."""
    answer: bool
    """Whether it was said to the agent, who reads it: prose is left alone."""
    fields: dict[str, str]
    """Fields of a configuration, in lower case, and their kinds."""
    kept: frozenset[str]
    """Fields, in lower case, that are not to be hidden."""
    kept_formats: frozenset[str]
    """Names of formats that are not to be hidden."""


class Format(NamedTuple):
    """A known look of secrets."""

    name: str
    begins: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    bounded: bool = True
    """Whether no letter or digit stands before it."""
    check: Callable[[bytes], bool] | None = None


def _mixed(value: bytes) -> bool:
    return is_credential(value)


def _is_basic(value: bytes) -> bool:
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in plain and plain.isascii()


def _format(name: str, begins: str, pattern: str, *, bounded: bool = True) -> Format:
    starts = tuple(part.encode() for part in begins.split())
    return Format(name, starts, re.compile(pattern.encode()), bounded)


def _word(name: str, begins: str, pattern: str, check: Callable[[bytes], bool] | None) -> Format:
    starts = tuple(part.encode() for part in begins.split("|"))
    return Format(name, starts, re.compile(pattern.encode()), bounded=False, check=check)


FORMATS: tuple[Format, ...] = (
    # Models
    Format(
        "sk", (b"sk-",), re.compile(rb"sk-(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"), check=_mixed
    ),
    _format("groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _format("xai", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    _format("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    _format("huggingface", "hf_", r"hf_[A-Za-z0-9]{20,}"),
    _format("replicate", "r8_", r"r8_[A-Za-z0-9]{20,}"),
    _format("tavily", "tvly-", r"tvly-[A-Za-z0-9-]{20,}"),
    # Clouds and code
    _format("aws", "AKIA ASIA", r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _format("google", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _format("google-oauth", "ya29. GOCSPX-", r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}"),
    _format("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _format("github-pat", "github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    _format("gitlab", "glpat-", r"glpat-[A-Za-z0-9_.-]{20,}"),
    _format("npm", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _format("pypi", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _format("digitalocean", "dop_v1_", r"dop_v1_[a-f0-9]{40,}"),
    # Services
    _format("stripe", "k_live_ k_test_", r"k_(?:live|test)_[A-Za-z0-9]{10,}", bounded=False),
    _format("webhook", "whsec_", r"whsec_[A-Za-z0-9+/=_-]{16,}"),
    _format("slack", "xox xapp-", r"(?:xox[abeoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{10,}"),
    _format("sendgrid", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _format("shopify", "shpat_ shpss_", r"shp(?:at|ss)_[A-Fa-f0-9]{32}"),
    # Anybody's
    _format("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){2,4}", bounded=False),
    _word(
        "pem",
        "-----BEGIN",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----((?:[^-]|-(?!----)){16,16000})",
        is_one,
    ),
    _word("bearer", "earer ", r"earer +([A-Za-z0-9._~+/=:|-]{8,})", lambda v: is_credential(v, 8)),
    _word("basic", "asic ", r"asic +([A-Za-z0-9+/]{8,}={0,2})", _is_basic),
    _word("slack-hook", "/services/T", r"/services/T[A-Z0-9]+/B[A-Z0-9]+/([A-Za-z0-9]{16,})", None),
    _word("discord-hook", "/webhooks/", r"/webhooks/[0-9]{10,}/([A-Za-z0-9_-]{30,})", None),
    _word("telegram", "/bot", r"/bot([0-9]{6,}:[A-Za-z0-9_-]{30,})", None),
)
"""Looks of secrets, by the name under which a configuration keeps one."""

_USERINFO = re.compile(rb"""://(?:[^\s/?#"'<>@\\:]*:([^\s/?#"'<>\\]+)|([A-Za-z0-9_.~%-]{16,}))@""")
"""A user and a password in a URL; the last `@` before the path ends them."""
_LONGEST_USER = 512

_FIELD_ENDS = (
    *("oken", "OKEN", "ecret", "ECRET", "ssword", "SSWORD", "asswd", "ASSWD", "phrase", "PHRASE"),
    *(
        "_key",
        "-key",
        "ikey",
        "Key",
        "_KEY",
        "IKEY",
        "rifier",
        "ertion",
        "jwt",
        "_code",
        "Code",
        "pwd",
        "PWD",
    ),
)
"""How names of fields end that may hold a secret."""

FOLLOWS = frozenset(b"\"'\\=:")
"""What may stand behind the name of a field; anything else is quickly passed over."""

ESCAPES = (*(rb"\u00%d" % digit for digit in range(2, 8)), rb"\/")
"""With these in a text, a secret in it may be written with escapes."""

_NAME = re.compile(rb"[A-Za-z0-9_.\-\[\]$@]*$")
_JSON = re.compile(rb"""(\\*)(["'])\s*:\s*(?:[bru]?)(\\*)\2""")
_PART = re.compile(rb'"?(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n')
_LOOSE = re.compile(rb"""\s*[=:]\s*(?:\\*["'])?([A-Za-z0-9_./+=~!@#$%^*:|-]{8,})""")
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_TAIL = re.compile(rb"[A-Za-z0-9._~+/=:|-]*\Z")
_LONGEST_NAME = 64
_MAX_VALUE = 16 * 1024
_ESCAPED_CONTROLS = b"nrtbf"

Handler = Callable[[Context, int, int], Found | None]


def triggers(fields: tuple[str, ...] = ()) -> dict[bytes, tuple[Handler, bool]]:
    """Give what the automata look for, and who looks closer.

    The flag says that it is the name of a field, and needs one of `FOLLOWS` behind it.

    fields: further names of fields, from a configuration.
    """
    table: dict[bytes, tuple[Handler, bool]] = {}
    for one in FORMATS:
        for begins in one.begins:
            table[begins] = _look_for(one), False
    for end in _FIELD_ENDS:
        table[end.encode()] = _find_field, True
    for name in fields:
        table.setdefault(name.encode(), (_find_field, True))
    return table


def find_userinfo(context: Context) -> list[Found]:
    """Find the passwords of URLs."""
    data, founds, at = context.data, list[Found](), -1
    if "userinfo" in context.kept_formats or b"@" not in data:
        return founds
    while (at := data.find(b"://", at + 1)) >= 0:
        end = at + _LONGEST_USER
        if data.find(b"@", at, end) < 0:
            continue
        found = _USERINFO.match(data, at, end)
        if found is not None and found.lastindex and is_one(found[found.lastindex]):
            founds.append(Found(*found.span(found.lastindex), SECRET, learn=True))
    return founds


def _look_for(one: Format) -> Handler:
    pattern, bounded, check, name = one.pattern, one.bounded, one.check, one.name

    def handler(context: Context, start: int, end: int) -> Found | None:
        data = context.data
        if bounded and start and not _is_boundary(data, start):
            return None
        found = pattern.match(data, start)
        if found is not None:
            group = found.lastindex or 0
            first, last = found.span(group)
            if (check is None or check(found[group])) and name not in context.kept_formats:
                return Found(first, last, SECRET, learn=name != "pem")
            if context.final or last < len(data):
                return None
        if (
            not context.final
            and name not in context.kept_formats
            and len(data) - start < _MAX_VALUE
        ):
            if name == "pem":
                line = data.find(b"-----", end)
                first = line + 5
                told = line >= 0 and b"PRIVATE" in data[start:line] and first < len(data)
                return Found(first, len(data), SECRET, learn=False) if told else None
            first = start if one.check is None or bounded else end
            if first < len(data) and _TAIL.match(data, end):
                return Found(first, len(data), SECRET, learn=False)
        return None

    return handler


def _is_boundary(data: bytes, start: int) -> bool:
    before = data[start - 1 : start]
    if not before.isalnum() and before != b"_":
        return True
    # The letter of an escape, as in `\nsk-...`.
    return before in (b"n", b"r", b"t") and data[start - 2 : start - 1] == b"\\"


def _find_field(context: Context, start: int, end: int) -> Found | None:
    """Look at a name that may be one of a field: of JSON, also inside a string, of a part, or in a text."""
    data = context.data
    begin = max(0, start - _LONGEST_NAME)
    name = _NAME.search(data, begin, end)
    if name is None:
        return None
    first = name.start()
    if data[first - 1 : first] == b"\\" and data[first : first + 1] in (b"n", b"r", b"t"):
        first += 1
    text = data[first:end].decode("ascii")
    lower = text.lower()
    kind = context.fields.get(lower)
    told = (kind, 1) if kind else field_kind(text)
    if told is None or lower in context.kept:
        return None
    kind, least = told
    json = _JSON.match(data, end)
    if json is not None and json[1] == json[3]:
        span = _find_string(context, json.end(), len(json[1]), json[2])
        return _judge(context, span, kind, least) if span else None
    part = _PART.match(data, end) if data[first - 6 : first] == b'name="' else None
    if part is not None:
        last = data.find(b"\r\n--", part.end())
        if last < 0:
            last = len(data)
        return _judge(context, (part.end(), last), kind, least)
    loose = _LOOSE.match(data, end)
    if loose is None:
        return None
    value = loose[1].rstrip(b".,:")
    if not is_credential(value, 12 if least == 1 else 16):
        return None
    return Found(loose.start(1), loose.start(1) + len(value), SECRET, learn=True)


def _find_string(context: Context, start: int, depth: int, quote: bytes) -> tuple[int, int] | None:
    """Find the end of a string that begins at `start`, its quotes escaped by `depth` backslashes."""
    data = context.data
    if depth == 0 and quote == b'"':
        found = _STRING.match(data, start)
        assert found is not None
        return found.span()
    ends = b"\\" * depth + quote
    at = start
    while (at := data.find(ends, at)) >= 0:
        if data[at - 1 : at] != b"\\":
            return start, at
        at += 1
    return None if context.final else (start, len(data))


def _judge(context: Context, span: tuple[int, int], kind: str, least: int) -> Found | None:
    start, end = span
    if end - start > _MAX_VALUE:
        return None
    value = context.data[start:end]
    # In a text that goes on a short value may be the beginning of one.
    cut = not context.final and end == len(context.data)
    if least > 1 and not cut and not is_credential(value, least):
        return None
    if not is_one(value) or (least == 1 and context.answer and not cut and is_prose(value)):
        return None
    scheme, space, rest = value.partition(b" ")
    if space and scheme.lower() in (b"bearer", b"basic", b"token") and rest:
        start += len(scheme) + 1
    # What its look has to say counts as what is found anywhere.
    declared = least == 1
    return Found(start, end, kind if declared else SECRET, not cut, declared)
