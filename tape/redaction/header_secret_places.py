"""Places of secrets in header fields whose names say nothing of them: a key in a field of one's own, a URL with a password.

Such a field counts in matching, and what was found in it counts as it does in a body. A place is counted within the values of all
fields of its name, one behind the other, so it stays where other fields come and go.
"""

from collections.abc import Iterable, Iterator

from ..exchange import HEADER, Headers, Request, Secret, find_header_part
from .compare_placeholders import PAIRS, USERS, kind_of_pair
from .credential_fields import SIGNATURE

_MARK = b"%00(secret)"
_ANY_MARK = b"%00("


def find_values(request: Request) -> dict[str, bytes]:
    """Give the values of the fields in which secrets were found, by their part, those of one name one behind the other."""
    wanted = {one.part for one in request.secrets if one.part.startswith(HEADER)}
    found = dict.fromkeys(wanted, b"")
    for name, value in request.headers if wanted else ():
        part = find_header_part(name)
        if part in found:
            found[part] += value
    return found


def find_in_urls(request: Request) -> Iterator[tuple[str, bytes, bool]]:
    """Yield place and placeholder, as it is written, of each secret of a URL in a header field, and whether it is in a place of credentials.

    User and password count; keys of a query do not. Signatures are made anew for each request, and are none.
    """
    for name, value in request.headers:
        part = find_header_part(name) if b"//" in value or b"?" in value or b"#" in value else None
        if part is None:
            continue
        for user in USERS.finditer(value):
            yield from ((part, one, False) for one in user[2].split(b":") if one)
        for pair in PAIRS.finditer(value):
            if (kind_of_pair(pair) or SIGNATURE) != SIGNATURE:
                query = pair[2].decode("latin-1").lower()
                yield f"{part}?{query}", pair[3], True


def mark_header_places(headers: Headers, secrets: Iterable[Secret]) -> Headers:
    """Give header fields with a mark in the place of each placeholder; the same ones where there is none."""
    found: dict[str, list[Secret]] = {}
    for one in secrets:
        if one.part.startswith(HEADER):
            found.setdefault(one.part, []).append(one)
    if not found:
        return headers
    ends = dict.fromkeys(found, 0)
    marked = list(headers)
    for at, (name, value) in enumerate(headers):
        part = find_header_part(name)
        if part in found:
            marked[at] = name, _mark(value, found[part], ends[part])
            ends[part] += len(value)
    return tuple(marked)


def _mark(value: bytes, secrets: list[Secret], start: int) -> bytes:
    for one in reversed(secrets):
        first = one.at - start
        if first >= 0 and first + one.size <= len(value):
            value = value[:first] + _MARK + value[first + one.size :]
    return value


def is_marked(headers: Headers, name: bytes) -> bool:
    """Say whether a value of a field has a mark."""
    return any(_ANY_MARK in value for one, value in headers if one == name)
