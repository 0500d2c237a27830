"""Find the places of a stored request in which a value was replaced, and those of them that count: all but those of credentials.

A credential is in a place of its own: a header field, a query key, a member `api_key`, a form for a token. There another one may be
sent than was recorded. Whatever else was replaced (a key in a prompt, the password of somebody) is part of what was asked.
"""

import json
import re
from collections.abc import Callable, Container, Iterator
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, unquote_to_bytes

from ..exchange import BODY, HEADER, TARGET, UNSEARCHED, Request, Secret
from ..records.redacted_value_spelling import UNRESERVED, InnerSecret, Spelling
from .compare_placeholders import find_numbers
from .credential_fields import QUERY, kind_of_header, nth_value
from .header_secret_places import find_in_urls, find_values
from .placeholders.placeholder import unescape
from .placeholders.prefixes import prefix_size
from .secrets_in_heads import bare_name

_FORM = b"application/x-www-form-urlencoded"
_GRANT = b"grant_type="
_OWN = frozenset(
    ("apikey", "apitoken", "accesskey", "clientsecret", "refreshtoken", "subscriptionkey")
)
"""Members and fields of forms that are places of credentials, without what separates words."""
_SEPARATORS = re.compile(r"[^a-z0-9]")
_MEMBER = re.compile(rb'"([^"\\]{1,80})"\s{0,8}:\s{0,8}"\Z')
_FIELD = re.compile(rb"(?:\A|&)([^&=]{1,80})=\Z")
_MARK = re.compile("\0([0-9]+)\0")
_MOST_BYTES = 4 * 1024 * 1024
"""Of a body beyond which values are counted one after the other, and not by their members."""
_TRIPLET = re.compile(rb"%[0-9A-Fa-f]{2}")


class _Inside(NamedTuple):
    """The same, before its places are counted."""

    place: str
    own: bool
    """Whether the place is one of credentials."""
    value: bytes
    spelling: Spelling


def find_inner_secrets(request: Request, names: frozenset[str]) -> Iterator[InnerSecret]:
    """Yield each value, as they come; of a body that is not held, none has a place of its own.

    names: lower-case names of query keys that are places of credentials.
    """
    for one in _find(request):
        prefix = one.value[: prefix_size(one.value)]
        yield InnerSecret(one.place, one.value, prefix, not one.own, one.spelling)
    if names:
        yield from _in_query(request.target.partition("?")[2], names)


def _in_query(query: str, names: frozenset[str]) -> Iterator[InnerSecret]:
    """Yield the values of query keys, each of a key with several as a place of its own: they count in their order."""
    pairs: list[tuple[bytes, str, bytes]] = []
    nth: dict[str, int] = {}
    for pair in query.split("&"):
        name, _, text = pair.partition("=")
        plain = unquote_to_bytes(name.encode("utf-8", "surrogatepass"))
        key = plain.lower().decode("utf-8", "replace")
        number = nth[key] = nth.get(key, 0) + 1
        if key in names or nth_value(key, number) in names:
            pairs.append((plain, key, text.encode("utf-8", "surrogatepass")))
    # Names in other letters are other keys, whose order among each other does not count.
    pairs.sort(key=itemgetter(0))
    counts: dict[str, int] = {}
    for _, key, raw in pairs:
        number = counts[key] = counts.get(key, 0) + 1
        own = key in QUERY or bare_name(key) in QUERY or _is_own(key) or _is_named_like_one(key)
        place = f"query {key}" + (f"#{number}" if number > 1 else "")
        yield InnerSecret(place, unescape(raw), b"", not own, Spelling(_in_url(raw)))


def _is_named_like_one(key: str) -> bool:
    """Say whether a query key is named as header fields for credentials are."""
    return kind_of_header(key.replace("_", "-")) is not None


def find_own_fields(request: Request, names: frozenset[str]) -> Iterator[InnerSecret]:
    """Yield the same of each header field that was replaced for a rule of one's own: it is in no place of credentials.

    names: lower-case names of such fields.
    """
    counts: dict[str, int] = {}
    for name, value in request.headers:
        lower = name.decode("latin-1").lower()
        if lower in names:
            number = counts[lower] = counts.get(lower, 0) + 1
            stripped = value.strip()
            place = f"{HEADER}{lower}" + (f"#{number}" if number > 1 else "")
            prefix = stripped[: prefix_size(stripped)]
            yield InnerSecret(place, stripped, prefix, True, Spelling(stripped))


def _find(request: Request) -> Iterator[_Inside]:
    """Yield each value with its place as differences name it, with `#` and a number from the second value there on."""
    counts: dict[str, int] = {}
    for one in _find_all(request):
        number = counts[one.place] = counts.get(one.place, 0) + 1
        yield one._replace(place=f"{one.place}#{number}") if number > 1 else one


def _find_all(request: Request) -> Iterator[_Inside]:
    if request.body:
        yield from _in_body(request, [one for one in request.secrets if one.part == BODY])
    if request.spilled is not None:
        for raw, own in request.spilled.replaced:
            yield _Inside("body", own, unescape(raw), Spelling(raw))
    values = find_values(request)
    for one in request.secrets:
        if one.part in values:
            raw = values[one.part][one.at : one.at + one.size]
            yield _Inside(one.part, False, raw, Spelling(raw, one.coded))
        elif one.part == TARGET:
            place, own = _in_target(request.target, one.at)
            text = request.target[one.at : one.at + one.size]
            raw = text.encode("utf-8", "surrogatepass")
            yield _Inside(place, own, unescape(raw), Spelling(_in_url(raw), one.coded))
    for place, raw, own in find_in_urls(request):
        yield _Inside(place, own, unescape(raw), Spelling(raw))


_Place = tuple[str, bool]
"""A place, and whether it is one of credentials."""


def _in_body(request: Request, secrets: list[Secret]) -> Iterator[_Inside]:
    if not secrets:
        return
    body = request.body
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    numbers = frozenset[int]()
    read: Callable[[bytes], bytes] = bytes
    if kind == _FORM:
        # A form for a token is all credentials: codes, assertions, passwords.
        token, read = _GRANT in body, _read_form
        places = [_in_form(body, one.at, token) for one in secrets]
    else:
        found = dict[int, _Place]()
        if len(body) <= _MOST_BYTES:
            numbers = find_numbers(body, secrets)
            found = _in_json(body, secrets, numbers)
        if found and (not kind or b"json" in kind):
            read = _read_json
        places = [found.get(at, ("body", False)) for at in range(len(secrets))]
    for one, (place, own) in zip(secrets, places, strict=True):
        if one.kind.startswith(UNSEARCHED):
            # Its keyed hash stands for it.
            yield _Inside(place, own, one.kind.encode(), Spelling())
            continue
        raw = body[one.at : one.at + one.size]
        spelling = Spelling(read(raw), one.coded, one.at in numbers)
        yield _Inside(place, own, unescape(raw), spelling)


def _read_form(raw: bytes) -> bytes:
    """Give what a part of a field of a form says."""
    return unquote_to_bytes(raw.replace(b"+", b" "))


def _read_json(raw: bytes) -> bytes:
    """Give what a part of a string of JSON says."""
    if b"\\" not in raw:
        return raw
    try:
        text: str = json.loads(b'"%b"' % raw, strict=False)
    except ValueError:
        return raw
    return text.encode("utf-8", "surrogatepass")


def _in_url(raw: bytes) -> bytes:
    """Write the percent-encodings of a target one way, as they are compared."""
    return _TRIPLET.sub(_normal_triplet, raw) if b"%" in raw else raw


def _normal_triplet(triplet: re.Match[bytes]) -> bytes:
    code = unquote_to_bytes(triplet[0])
    return code if code[0] in UNRESERVED else triplet[0].upper()


def _in_form(body: bytes, at: int, token: bool) -> _Place:
    pair = body[body.rfind(b"&", 0, at) + 1 : at]
    name = unquote_plus(pair.partition(b"=")[0].decode("latin-1"))
    return f"form {name}", token or _is_own(name)


def _in_json(body: bytes, secrets: list[Secret], numbers: Container[int]) -> dict[int, _Place]:
    """Give the places of secrets in JSON, by their number; none where a body is not JSON."""
    parts: list[bytes] = []
    at = 0
    for number, one in enumerate(secrets):
        mark = b'"\\u0000%d\\u0000"' if one.at in numbers else b"\\u0000%d\\u0000"
        parts += (body[at : one.at], mark % number)
        at = one.at + one.size
    parts.append(body[at:])
    try:
        document = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        return {}
    return dict(_walk(document, "$", ""))


def _walk(value: Any, path: str, name: str) -> Iterator[tuple[int, _Place]]:
    if isinstance(value, str):
        for found in _MARK.finditer(value):
            # Of a longer text a credential is a part, and no member of its own.
            own = found[0] == value and _is_own(name)
            yield int(found[1]), (f"body {path}", own)
    elif isinstance(value, dict):
        for key, member in value.items():
            for found in _MARK.finditer(key):
                yield int(found[1]), (f"body {path}", False)
            yield from _walk(member, f"{path}.{key}", key)
    elif isinstance(value, list):
        for at, member in enumerate(value):
            yield from _walk(member, f"{path}[{at}]", name)


def _in_target(target: str, at: int) -> _Place:
    if at <= len(target.partition("?")[0]):
        return "path", False
    start = max(target.rfind(sign, 0, at) for sign in "?&;")
    name = unquote_plus(target[start + 1 : at].partition("=")[0])
    return f"query {name}", name.lower() in QUERY or _is_own(name)


def is_own_behind(text: bytes, *, form: bool) -> bool:
    """Say whether a value behind a text is in a place of credentials: a member of JSON, or a field of a form.

    form: whether it is one.
    """
    found = (_FIELD if form else _MEMBER).search(text)
    return found is not None and _is_own(unquote_plus(found[1].decode("latin-1")))


def _is_own(name: str) -> bool:
    return _SEPARATORS.sub("", name.lower()) in _OWN
