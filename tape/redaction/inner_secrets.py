"""Find the secrets in the path, query and body of a stored request, which count by their kinds, with their values."""

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from ..exchange import Request
from .compare_placeholders import BODY, TARGET
from .placeholder import unescape


def find_inner_secrets(request: Request, names: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """Yield place and value of each, as they come; of a body that is not held, none.

    names: lower-case names of query keys whose values count by their kind alone.
    """
    for part, at, size, kind in request.secrets:
        if part == BODY and request.body:
            yield f"{part} {kind}", unescape(request.body[at : at + size])
        elif part == TARGET:
            text = request.target[at : at + size].encode("utf-8", "surrogatepass")
            yield f"{part} {kind}", unescape(text)
    for pair in request.target.partition("?")[2].split("&") if names else ():
        name, _, value = pair.partition("=")
        plain = unquote_to_bytes(name.encode("utf-8", "surrogatepass")).lower()
        text = value.encode("utf-8", "surrogatepass")
        if plain.decode("utf-8", "replace") in names:
            yield f"query {plain.decode('utf-8', 'replace')}", unescape(text)
