"""Find the places of a stored request in which a value was replaced, and those of them that count: all but those of credentials.

A credential is in a place of its own: a header field, a query key, a member `api_key`, a form for a token. There another one may be
sent than was recorded. Whatever else was replaced (a key in a prompt, the password of somebody) is part of what was asked.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus, unquote_to_bytes

from ..exchange import BODY, HEADER, TARGET, UNSEARCHED, Request, Secret
from .header_places import find_in_urls, find_values
from .placeholders.placeholder import unescape
from .placeholders.prefixes import prefix_size
from .places import QUERY, kind_of_header
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


def find_inner_secrets(
    request: Request, names: frozenset[str]
) -> Iterator[tuple[str, bytes, bytes, bool]]:
    """Yield place, placeholder and known prefix of each value, as they come, and whether it counts; of a body that is not held, none.

    names: lower-case names of query keys that are places of credentials.
    """
    for place, value, own in _find(request):
        yield place, value, value[: prefix_size(value)], not own
    for pair in request.target.partition("?")[2].split("&") if names else ():
        name, _, text = pair.partition("=")
        plain = unquote_to_bytes(name.encode("utf-8", "surrogatepass")).lower()
        if plain.decode("utf-8", "replace") in names:
            key = plain.decode("utf-8", "replace")
            value = unescape(text.encode("utf-8", "surrogatepass"))
            own = key in QUERY or bare_name(key) in QUERY or _is_own(key) or _is_named_like_one(key)
            yield f"query {key}", value, b"", not own


def _is_named_like_one(key: str) -> bool:
    """Say whether a query key is named as header fields for credentials are."""
    return kind_of_header(key.replace("_", "-")) is not None


def find_own_fields(
    request: Request, names: frozenset[str]
) -> Iterator[tuple[str, bytes, bytes, bool]]:
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
            yield place, stripped, stripped[: prefix_size(stripped)], True


def _find(request: Request) -> Iterator[tuple[str, bytes, bool]]:
    """Yield place, placeholder, and whether the place is one of credentials.

    A place is as differences name it, with `#` and a number from the second value there on.
    """
    counts: dict[str, int] = {}
    for place, value, own in _find_all(request):
        number = counts[place] = counts.get(place, 0) + 1
        yield f"{place}#{number}" if number > 1 else place, value, own


def _find_all(request: Request) -> Iterator[tuple[str, bytes, bool]]:
    body = [one for one in request.secrets if one.part == BODY]
    if body and request.body:
        for one, (place, own) in zip(body, _in_body(request, body), strict=True):
            yield place, _value_of(one, request.body), own
    if request.spilled is not None:
        yield from (("body", value, own) for value, own in request.spilled.replaced)
    values = find_values(request)
    for one in request.secrets:
        if one.part in values:
            yield one.part, values[one.part][one.at : one.at + one.size], False
        elif one.part == TARGET:
            place, own = _in_target(request.target, one.at)
            text = request.target[one.at : one.at + one.size]
            yield place, unescape(text.encode("utf-8", "surrogatepass")), own
    yield from find_in_urls(request)


def _value_of(secret: Secret, body: bytes) -> bytes:
    """Give what stands for a value: of what was not searched it is the keyed hash, which the kind has."""
    if secret.kind.startswith(UNSEARCHED):
        return secret.kind.encode()
    return unescape(body[secret.at : secret.at + secret.size])


_Place = tuple[str, bool]
"""A place, and whether it is one of credentials."""


def _in_body(request: Request, secrets: list[Secret]) -> list[_Place]:
    body = request.body
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind == _FORM:
        # A form for a token is all credentials: codes, assertions, passwords.
        token = _GRANT in body
        return [_in_form(body, one.at, token) for one in secrets]
    places = _in_json(body, secrets) if len(body) <= _MOST_BYTES else {}
    return [places.get(at, ("body", False)) for at in range(len(secrets))]


def _in_form(body: bytes, at: int, token: bool) -> _Place:
    pair = body[body.rfind(b"&", 0, at) + 1 : at]
    name = unquote_plus(pair.partition(b"=")[0].decode("latin-1"))
    return f"form {name}", token or _is_own(name)


def _in_json(body: bytes, secrets: list[Secret]) -> dict[int, _Place]:
    """Give the places of secrets in JSON, by their number; none where a body is not JSON."""
    parts: list[bytes] = []
    at = 0
    for number, one in enumerate(secrets):
        parts += (body[at : one.at], b"\\u0000%d\\u0000" % number)
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
