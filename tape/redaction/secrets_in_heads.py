"""Secrets in heads: header fields and trailers by name, URLs by the names of query parameters, whatever field they are in.

What is no secret stays: the scheme of an `authorization`, names and attributes of cookies, names of query keys,
every percent-encoding a valid one.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus

from ...config.schema import KeepRule, RedactRule
from ..records.credential_parts import find_in_protocols, read_pair
from .credential_fields import (
    AMBIGUOUS,
    AUTHORIZATION,
    CONFIGURED,
    COOKIE,
    OPEN_PARAMETERS,
    QUERY,
    SCHEMES,
    SHARED_KEYS,
    SIGNATURE,
    TOKEN,
    URL_HEADERS,
    WITH_PARAMETERS,
    find_header,
    is_credential,
    is_query_secret,
    kind_of_header,
)
from .finding.secrets_by_name import read_name
from .learned import Learned
from .placeholders.placeholder import Placeholders, unescape

_PARAMETER = re.compile(rb"(\s*[A-Za-z0-9_-]+\s*=)(.*)", re.DOTALL)

_LEAST_CODE = 16
"""Characters of the code of an OAuth grant; a shorter one is none that is opaque."""
_FUNCTION_KEY = re.compile(rb"[A-Za-z0-9_/+-]{52,54}(?:=|%3[Dd]){2}")
"""Of an Azure Function, whose URL has it as `code`."""
_BETWEEN = re.compile(rb"[\s,;=:\"']+")
_LASTING = re.compile(rb"(?:token|key|secret|password)\Z")
"""Ends of the names of parameters that are the same in each request."""

_COSMOS = re.compile(rb"type(?:=|%3d)[a-z]+(?:&|%26)ver", re.IGNORECASE)
_COSMOS_SIGNATURE = re.compile(rb"((?:&|%26)sig(?:=|%3d))(.*)", re.IGNORECASE | re.DOTALL)
"""Cosmos DB writes its `authorization` as a query, percent-encoded, without a scheme."""

_DELIMITER = re.compile(rb"([?#&]|;(?=[A-Za-z0-9_.%-]{1,64}=))")
"""Before a pair: some servers take `;` for `&`."""
_BRACKETS = re.compile(r"[\[\]]+")
_LONG_NAME = 20
"""Bytes from which the name of an empty cookie is taken for a value."""
_USER = re.compile(rb"((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)([^/?#\s]*)@")
"""The last `@` ends it: a password may hold one that nobody encoded."""

URLS = re.compile(
    rb"""[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'\\]+|(?:(?<=[\s<"'=,;])|^)/(?:/[^\s<>"'\\]+|[^\s<>"'\\]*[?#][^\s<>"'\\]+)"""
)
"""URLs, and targets with a query, in a header field of any name."""
_IN_URLS = re.compile(rb"[?#@]")
"""What a URL with a secret in a declared place has."""

_NAMED = re.compile(r"(?:key|passwd|pwd|pass|passphrase|[a-z](?:token|jwt)|sessionid)\Z")
"""How further fields are named that may hold a secret: it has to look like one."""
_TOKENS = re.compile(r"[a-z](?:token|jwt)\Z")
"""The same in an answer, where keys and ids of sessions are mostly names of what is cached or open."""
_URL = "url"
"""In place of a kind: the header field is a URL."""
_PROTOCOLS = "protocols"
"""In place of a kind: the header field lists subprotocols of a WebSocket."""

_NOT_ENCODED = re.compile(rb"%(?![0-9A-Fa-f]{2})|%(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])")
"""A percent sign that no encoder has written: of nothing, or of a letter or digit."""

KindOf = Callable[[bytes], str | None]


class Pair(NamedTuple):
    """A value of a URL that was replaced."""

    name: str
    kind: str
    at: int
    size: int
    alone: bool
    """Whether its name tells whoever compares that it is a secret: it stands between `&`s."""


class Heads:
    """Replaces the secrets that stand in declared places of heads, and learns them."""

    def __init__(
        self,
        placeholders: Placeholders,
        learned: Learned,
        rules: Sequence[RedactRule] = (),
        kept: Sequence[KeepRule] = (),
    ) -> None:
        """Take what a configuration adds to the shipped places, and what it takes from them."""
        self._placeholders = placeholders
        self._learned = learned
        self._headers = frozenset(rule.header.lower() for rule in rules if rule.header)
        self._kept = frozenset(rule.header.lower() for rule in kept if rule.header)
        configured = {rule.query.lower(): CONFIGURED for rule in rules if rule.query}
        ambiguous = {name: CONFIGURED for name in configured if name in AMBIGUOUS}
        self.query = {**configured, **QUERY, **ambiguous}
        for rule in kept:
            self.query.pop(rule.query.lower(), None)
        # Names of one agent repeat from request to request.
        self._in_request: KindOf = lru_cache(maxsize=1024)(self._find_in_request)
        self._in_response: KindOf = lru_cache(maxsize=1024)(self._find_in_response)
        self._names_one: Callable[[bytes], bool] = lru_cache(maxsize=1024)(self._is_named_like_one)
        self.names_in_answer: Callable[[bytes], bool] = lru_cache(maxsize=1024)(
            self._is_named_in_answer
        )
        """Say whether a field of an answer that the table does not know is named like one that holds a secret."""

    def placeholder(self, kind: str, value: bytes) -> bytes:
        """Give what stands for a secret of a kind; `value` is a whole header or query value.

        `authorization` keeps its scheme, `cookie` its names; of a `set-cookie` the first value is replaced by
        `fields`.
        """
        if kind == AUTHORIZATION:
            return self._authorization(value)
        if kind == COOKIE:
            return b";".join([self._pair(part) for part in value.split(b";")])
        return self._hide(kind, value)

    def field(
        self, name: bytes, value: bytes, *, in_request: bool
    ) -> tuple[bytes, tuple[str, ...], bytes]:
        """Give a field's value without what is a secret for its name, the kinds that were, and what may still hold one.

        Of a `set-cookie` the first value is replaced, its attributes stay.
        """
        kind = (self._in_request if in_request else self._in_response)(name)
        if kind is None:
            if (self._names_one if in_request else self.names_in_answer)(name):
                self._learn_if_strong(name, value.strip())
            if b"/" in value and _IN_URLS.search(value):
                return self._urls(value)
            return value, (), value
        if kind is _URL:
            new, pairs = self.url(value, codes=not in_request)
            kinds = tuple(dict.fromkeys(pair.kind for pair in pairs)) if new != value else ()
            return new, kinds, blank(value, pairs)
        if kind is _PROTOCOLS:
            new, kind = self._protocols(value), TOKEN
            if new == value:
                return value, (), value
        elif name[:10].lower() == b"set-cookie":
            first, semicolon, attributes = value.partition(b";")
            new, kind = self._pair(first) + semicolon + attributes, COOKIE
        else:
            new = self.placeholder(kind, value)
        return new, (kind,) if new != value else (), b""

    def url(self, url: bytes, *, codes: bool = False) -> tuple[bytes, list[Pair]]:
        """Replace the secrets of a URL or target; give what was replaced, in order.

        codes: as for `pairs`.
        """
        pairs = self.pairs(url, codes=codes)
        parts: list[bytes] = []
        at = 0
        for pair in pairs:
            value = url[pair.at : pair.at + pair.size]
            if pair.name == "userinfo":
                names = value.split(b":")
                new = b":".join([self._in_url(AUTHORIZATION, name) for name in names])
            else:
                new = self._in_url(pair.kind, value)
            parts += (url[at : pair.at], new)
            at = pair.at + pair.size
        return b"".join([*parts, url[at:]]), pairs

    def pairs(self, url: bytes, *, codes: bool = False) -> list[Pair]:
        """Find the secrets of a URL or target, in order.

        codes: whether it sends a client somewhere, so that `code` beside `state` is the code of an OAuth grant.
        """
        found: list[Pair] = []
        user = _USER.match(url)
        at = 0
        if user:
            size = len(user[2])
            found.append(Pair("userinfo", AUTHORIZATION, user.start(2), size, alone=True))
            at = user.end(2)
        # Tokens stand in the fragment too: RFC 6749 section 4.2.2.
        pieces = _DELIMITER.split(url[at:])
        at += len(pieces[0])
        codes = codes and {piece.partition(b"=")[0] for piece in pieces} >= {b"code", b"state"}
        for index in range(2, len(pieces), 2):
            piece, sign = pieces[index], pieces[index - 1]
            at += len(sign)
            name, _, value = piece.partition(b"=")
            plain = plain_name(name.decode("latin-1"))
            kind = self.query.get(plain) or self.query.get(bare_name(plain))
            grant = plain == "code" and (
                (codes and len(value) >= _LEAST_CODE) or _FUNCTION_KEY.fullmatch(value) is not None
            )
            if grant:
                kind = TOKEN
            if (
                kind
                and value
                and (
                    grant
                    or kind == CONFIGURED
                    or is_query_secret(bare_name(plain), value.decode("latin-1"))
                )
            ):
                alone = sign != b";" and pieces[index + 1 : index + 2] != [b";"]
                found.append(Pair(plain, kind, at + len(name) + 1, len(value), alone))
            at += len(piece)
        return found

    # ---- inside --------------------------------------------------------------------------------

    def _learn_if_strong(self, name: bytes, value: bytes) -> None:
        """Learn a value like a secret in a field that is named like one: it is found there then, and counts."""
        place = read_name(name)
        if place is not None and place.accepts(value):
            self._learned.add(value)

    def _find_in_response(self, name: bytes) -> str | None:
        # The table alone: an answer's `x-next-token` has to come back as it was.
        lower = name.decode("latin-1").lower()
        if "_" in lower and lower not in self._kept:  # CGI and WSGI know no difference
            dashed = lower.replace("_", "-")
            if dashed not in self._kept and (found := find_header(dashed)) is not None:
                return found
        if lower in self._kept:
            return None
        if found := find_header(lower):
            return found
        if lower in self._headers:
            return CONFIGURED
        if lower == "sec-websocket-protocol":
            return _PROTOCOLS
        return _URL if lower in URL_HEADERS else None

    def _find_in_request(self, name: bytes) -> str | None:
        lower = name.decode("latin-1").lower()
        found = self._find_in_response(name)
        if found or lower in self._kept:
            return found
        return kind_of_header(lower)

    def _is_named_like_one(self, name: bytes) -> bool:
        lower = name.decode("latin-1").lower()
        return lower not in self._kept and _NAMED.search(lower) is not None

    def _is_named_in_answer(self, name: bytes) -> bool:
        lower = name.decode("latin-1").lower().replace("_", "-")
        return (
            self._in_response(name) is None
            and not self._kept.intersection((lower, lower.replace("-", "_")))
            and (kind_of_header(lower) is not None or _TOKENS.search(lower) is not None)
        )

    def _urls(self, value: bytes) -> tuple[bytes, tuple[str, ...], bytes]:
        """Replace the secrets of each URL in a text."""
        new: list[bytes] = []
        rest: list[bytes] = []
        kinds: dict[str, None] = {}
        at = 0
        for found in URLS.finditer(value):
            replaced, pairs = self.url(found[0])
            new += (value[at : found.start()], replaced)
            rest += (value[at : found.start()], blank(found[0], pairs))
            at = found.end()
            if replaced != found[0]:
                kinds |= dict.fromkeys(pair.kind for pair in pairs)
        return (
            b"".join([*new, value[at:]]),
            tuple(kinds),
            b"".join([*rest, value[at:]]),
        )

    def _protocols(self, value: bytes) -> bytes:
        """Replace the secrets among subprotocols, where browsers have to put them."""
        for start, end in find_in_protocols(value):
            value = value[:start] + self._hide(TOKEN, value[start:end]) + value[end:]
        return value

    def _authorization(self, value: bytes) -> bytes:
        """Replace what is secret; scheme, scope, account and names of what is signed are compared, and stay."""
        if _COSMOS.match(value.strip()):
            return _COSMOS_SIGNATURE.sub(
                lambda found: found[1] + self._in_url(SIGNATURE, found[2]), value
            )
        scheme, space, rest = value.partition(b" ")
        word = scheme.decode("latin-1").lower()
        if not space or word not in SCHEMES:
            return self._hide(AUTHORIZATION, value)
        if word in SHARED_KEYS and b":" in rest:
            account, colon, signature = rest.partition(b":")
            if word == "aws":
                account = self._placeholders.of(account)
            return scheme + space + account + colon + self._placeholders.of(signature)
        if word == "sharedaccesssignature":
            hidden = [self._sign(part) for part in rest.split(b"&")]
            return scheme + space + b"&".join(hidden)
        if word == "basic":
            coded = rest.strip()
            user, password = read_pair(coded, basic=True) or (b"", b"")
            # A user has a name, but where it is a token itself.
            self._learn(AUTHORIZATION, password or user)
            self._learn(AUTHORIZATION, coded)
            return scheme + space + rest.replace(coded, self._placeholders.in_basic(coded))
        if word not in WITH_PARAMETERS:
            return scheme + space + self._hide(AUTHORIZATION, rest)
        parts = [self._parameter(part) for part in rest.split(b",")]
        return scheme + space + b",".join(parts)

    def _parameter(self, part: bytes) -> bytes:
        """Replace what is secret of one parameter of a signed `authorization`."""
        found = _PARAMETER.fullmatch(part)
        if found is None:
            return self._placeholders.of(part)
        # A signature is made for one request; names of what is signed are no secret elsewhere.
        name, secret = found[1], found[2]
        plain = name.strip().rstrip(b"=").rstrip().lower()
        if plain in OPEN_PARAMETERS:
            return part
        key, slash, scope = secret.partition(b"/")
        if plain == b"credential" and scope.count(b"/") == 3:
            return name + self._placeholders.of(key) + slash + scope
        if _LASTING.search(plain):
            self._learn(AUTHORIZATION, secret.strip())
        return name + self._placeholders.of(secret)

    def _sign(self, part: bytes) -> bytes:
        name, eq, value = part.partition(b"=")
        return name + eq + (self._in_url(SIGNATURE, value) if name.lower() == b"sig" else value)

    def _pair(self, part: bytes) -> bytes:
        name, eq, value = part.partition(b"=")
        # Without a name it is all value; so it is where the sign is only the padding of one.
        if not eq or (len(name) >= _LONG_NAME and not value.strip(b"= ")):
            return self._in_url(COOKIE, part)
        return name + eq + self._in_url(COOKIE, value)

    def _hide(self, kind: str, value: bytes) -> bytes:
        self._learn(kind, value.strip())
        return self._placeholders.of(value)

    def _in_url(self, kind: str, value: bytes) -> bytes:
        """Replace a value in which percent-encodings stand: what is encoded is replaced, or stays."""
        written = value.strip() if _NOT_ENCODED.search(value) else b""
        self._learn(kind, unescape(value).strip(), written)
        return self._placeholders.in_url(value)

    def _learn(self, kind: str, value: bytes, written: bytes = b"") -> None:
        """Take a secret, to be found elsewhere.

        written: as it was sent, if that is what it is: then it is as long.
        """
        # Cookies are full of settings, and a signature is for one request alone.
        if kind == SIGNATURE or (
            kind == COOKIE and not is_credential(value) and not is_credential(written)
        ):
            return
        self._learned.add(value)
        # Whatever its scheme and parameters are, each word of it may be the credential, and comes back by itself.
        for word in _BETWEEN.split(value):
            if word != value.rstrip(b"=") and is_credential(word):
                self._learned.add(word)


def blank(value: bytes, pairs: list[Pair]) -> bytes:
    """Give a URL with NUL in the place of what has been replaced."""
    for pair in pairs:
        value = value[: pair.at] + bytes(pair.size) + value[pair.at + pair.size :]
    return value


def bare_name(name: str) -> str:
    """Give the word that says what a query key with brackets has: of `auth[token]` and `token[]` it is `token`."""
    if not name.endswith("]"):
        return name
    words = [word for word in _BRACKETS.split(name) if word and not word.isdigit()]
    return words[-1] if words else name


def plain_name(name: str) -> str:
    """Give the name of a query key as tables have it."""
    return (unquote_plus(name) if "%" in name or "+" in name else name).lower()
