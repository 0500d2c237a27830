"""Secrets out, before anything is written: every known place of a credential gets a placeholder.

Rules:

1. A placeholder depends on the key, the kind of the secret and its value, and on nothing else: the same
   secret is the same placeholder all over a store, and says nothing without the key.
2. It has the length of what it replaces, and a digit for each digit, a small letter for each small
   letter, a capital for each capital; everything else stands. No letter or digit stays what it was.
3. What is no secret stays: the scheme of an `authorization`, names and attributes of cookies, names of
   query keys, every percent-encoding a valid one.
4. A request without a secret is given back as it is, the same object.

Bodies are not looked into. In matching, a redacted query value counts by its kind alone
(`Redactor.redacted_query`), so a tape plays under other credentials, with one exception: services also
call harmless things `key`. Its value counts unless the host is Google's or the value reads like a
credential; redacted it is in any case.

Source: RFC 9110 section 11 (credentials), RFC 6265 section 4 (cookies), the AWS and Google pages on
signing URLs, and the header names that the providers' own pages give.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import shake_256
from urllib.parse import unquote_plus

from ..config.schema import RedactRule
from .model import Headers, Redaction, Request

AUTHORIZATION = "authorization"
COOKIE = "cookie"
KEY = "key"
TOKEN = "token"
SIGNATURE = "signature"
CONFIGURED = "configured"

HEADERS: dict[str, str] = {
    **dict.fromkeys(("authorization", "proxy-authorization", "x-authorization"), AUTHORIZATION),
    **dict.fromkeys(("x-forwarded-authorization", "x-serverless-authorization"), AUTHORIZATION),
    **dict.fromkeys(("cookie", "set-cookie", "cookie2", "set-cookie2"), COOKIE),
    **dict.fromkeys(
        (
            "api-key",
            "apikey",
            "x-api-key",
            "x-apikey",
            "x-goog-api-key",
            "x-functions-key",
            "x-rapidapi-key",
            "x-auth-key",
            "x-app-key",
            "x-application-key",
            "x-access-key",
            "x-secret-key",
            "x-master-key",
            "x-algolia-api-key",
            "x-typesense-api-key",
            "x-parse-rest-api-key",
            "x-parse-master-key",
            "xi-api-key",
            "dd-api-key",
            "dd-application-key",
            "ocp-apim-subscription-key",
            "ocp-apim-subscription-key-secondary",
            "aeg-sas-key",
            "x-honeycomb-team",
            "x-langfuse-secret-key",
            "cf-access-client-secret",
        ),
        KEY,
    ),
    **dict.fromkeys(
        (
            "private-token",
            "job-token",
            "deploy-token",
            "x-gitlab-token",
            "x-auth-token",
            "x-access-token",
            "x-csrf-token",
            "x-xsrf-token",
            "x-csrftoken",
            "x-session-token",
            "x-user-token",
            "x-refresh-token",
            "x-id-token",
            "x-subject-token",
            "x-vault-token",
            "x-consul-token",
            "x-nomad-token",
            "x-shopify-access-token",
            "x-shopify-storefront-access-token",
            "x-amz-security-token",
            "x-amz-access-token",
            "x-aws-ec2-metadata-token",
            "x-amzn-oidc-accesstoken",
            "x-amzn-oidc-data",
            "x-figma-token",
            "x-plex-token",
            "x-subscription-token",
            "x-goog-iap-jwt-assertion",
            "x-ms-token-aad-access-token",
            "x-ms-token-aad-id-token",
            "x-ms-token-aad-refresh-token",
            "cf-access-jwt-assertion",
            "cf-access-token",
            "dpop",
        ),
        TOKEN,
    ),
    **dict.fromkeys(
        ("aeg-sas-token", "x-hub-signature", "x-hub-signature-256", "x-slack-signature"), SIGNATURE
    ),
    "stripe-signature": SIGNATURE,
}
"""Header fields whose value is a secret, lower case, and what kind."""

URL_HEADERS = frozenset({"referer", "location", "content-location"})
"""Header fields that are URLs, and may hold secrets as a target may."""

QUERY: dict[str, str] = {
    **dict.fromkeys(
        (
            "key",
            "api_key",
            "apikey",
            "api-key",
            "x-api-key",
            "x-goog-api-key",
            "app_key",
            "appkey",
            "hapikey",
            "subscription-key",
            "private_key",
            "secret_key",
            "client_secret",
            "consumer_secret",
            "secret",
            "password",
            "passwd",
            "pwd",
            "passphrase",
            "code_verifier",
            "awsaccesskeyid",
        ),
        KEY,
    ),
    **dict.fromkeys(
        (
            "access_token",
            "accesstoken",
            "auth_token",
            "authtoken",
            "token",
            "id_token",
            "refresh_token",
            "session_token",
            "private_token",
            "job_token",
            "oauth_token",
            "api_token",
            "apitoken",
            "bearer",
            "bearer_token",
            "jwt",
            "auth",
            "authorization",
            "assertion",
            "client_assertion",
            "x-amz-security-token",
        ),
        TOKEN,
    ),
    **dict.fromkeys(
        (
            "sig",
            "signature",
            "oauth_signature",
            "hmac",
            "x-amz-signature",
            "x-amz-credential",
            "x-goog-signature",
            "x-goog-credential",
        ),
        SIGNATURE,
    ),
}
"""Query keys whose value is a secret, lower case, and what kind."""

_NONE: frozenset[str] = frozenset()
_LIKE_A_SECRET = re.compile(r"(?:^|[-_])(?:api-?key|token|secret|password|credentials?)$", re.ASCII)
"""How further request headers that hold a secret end."""
_HARMLESS = re.compile(r"page|next|continuation|cursor|sync|request|count|limit", re.ASCII)
"""What stands in the name of a header that ends in `-token` and is none."""

_CREDENTIAL = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_.~+/=-]{16,}", re.ASCII)
_GOOGLE = re.compile(r"(?:^|\.)(?:googleapis|google)\.com$", re.IGNORECASE)

_SCHEMES = frozenset(
    (
        "bearer",
        "basic",
        "token",
        "apikey",
        "api-key",
        "key",
        "bot",
        "negotiate",
        "ntlm",
        "digest",
        "oauth",
        "hawk",
        "signature",
        "dpop",
        "aws",
        "aws4-hmac-sha256",
        "aws4-ecdsa-p256-sha256",
        "goog4-rsa-sha256",
        "sharedkey",
        "sharedkeylite",
        "sharedaccesssignature",
        "splunk",
        "geniekey",
        "sso-key",
        "ssws",
        "klaviyo-api-key",
        "x-api-key",
    )
)
"""Words before the first space of an `authorization` that are no part of the secret, lower case."""
_WITH_PARAMETERS = frozenset(
    (
        "digest",
        "oauth",
        "hawk",
        "signature",
        "aws4-hmac-sha256",
        "aws4-ecdsa-p256-sha256",
        "goog4-rsa-sha256",
    )
)
"""Of these, the ones whose credentials are `name=value` pairs: RFC 9110 section 11.4."""
_PARAMETER = re.compile(rb"(\s*[A-Za-z0-9_-]+\s*=)(.*)", re.DOTALL)

_MARKED = re.compile(
    rb"(\s*\S*?(?:api-?key|token|bearer(?:\.authorization\.k8s\.io)?|secret|password|auth\w*|jwt)"
    rb"[.:=_-])(\S{6,}\s*)",
    re.IGNORECASE,
)
_MARK = re.compile(rb"\S*(?:api-?key|token|bearer|secret|password|auth\w*|jwt)", re.IGNORECASE)
"""Names of subprotocols that say that a secret follows, in the same one or as the next."""
_BARE = re.compile(rb"\s*(?:eyJ[\w-]+\.[\w.-]+|sk-\S{16,})\s*")
"""Subprotocols that are secrets: JSON Web Tokens and keys of model providers."""

_DELIMITER = re.compile(rb"([?#&])")
_LONG_NAME = 20
"""Bytes from which the name of an empty cookie is taken for a value."""
_UNIT = re.compile(rb"%[0-9A-Fa-f]{2}|.", re.DOTALL)
_USER = re.compile(rb"((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)([^/?#\s]*)@")
"""The last `@` ends it: a password may hold one that nobody encoded."""


def _rows() -> list[bytes]:
    """For each byte, what it may become: one of 256 by the byte of the key stream."""
    rows = [bytes([code]) * 256 for code in range(256)]
    for alphabet in (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        for code in alphabet:
            others = alphabet.replace(bytes([code]), b"")
            rows[code] = (others * 29)[:256]
    return rows


_ROWS = _rows()


_URL = "url"
"""In place of a kind: the header field is a URL."""
_PROTOCOLS = "protocols"
"""In place of a kind: the header field lists subprotocols of a WebSocket."""


def query_kind(name: str) -> str:
    """Give the kind of secret a query key holds; `configured` where the shipped table does not know it."""
    return QUERY.get(name.lower(), CONFIGURED)


class Redactor:
    """Replaces credentials by placeholders; one a store, since its key is the store's."""

    def __init__(self, key: bytes, rules: tuple[RedactRule, ...] = ()) -> None:
        """Take the store's key, and the places a configuration adds.

        Raises: ValueError for an empty key.
        """
        if not key:
            raise ValueError("the key of a redactor is empty; expected some secret bytes")
        self._key = key
        self._headers = frozenset(rule.header.lower() for rule in rules if rule.header)
        self._query = {**{r.query.lower(): CONFIGURED for r in rules if r.query}, **QUERY}
        self._keys = frozenset(r.query.lower() for r in rules)
        # Names and secrets of one agent repeat from request to request.
        self._in_request = lru_cache(maxsize=1024)(self._find_in_request)
        self._in_response = lru_cache(maxsize=1024)(self._find_in_response)
        self._made = lru_cache(maxsize=1024)(self._make)

    def placeholder(self, kind: str, value: bytes) -> bytes:
        """Give what stands for a secret of a kind; `value` is a whole header or query value.

        `authorization` keeps its scheme, `cookie` its names; of a `set-cookie` see `response_headers`.
        """
        if kind == AUTHORIZATION:
            return self._authorization(value)
        if kind == COOKIE:
            return b";".join([self._pair(part) for part in value.split(b";")])
        return self._made(kind, value)

    def request(self, request: Request) -> tuple[Request, tuple[Redaction, ...]]:
        """Give a request without its secrets, and where they were."""
        headers, found = self._fields(request.headers, "request.header.", self._in_request)
        if request.trailers:
            trailers, more = self._fields(request.trailers, "request.trailer.", self._in_request)
            found += more
        else:
            trailers = request.trailers
        target = request.target
        if "?" in target or not target.startswith("/"):
            # Surrogates stand for bytes that were no UTF-8; they pass through.
            raw = target.encode("utf-8", "surrogatepass")
            # A target that begins with two slashes is a path; a URL that does names a host.
            extra = max(0, len(raw) - len(raw.lstrip(b"/")) - 1)
            new, names = self._url(raw[extra:])
            target = (raw[:extra] + new).decode("utf-8", "surrogatepass")
            found += [Redaction(f"request.query.{name}", kind) for name, kind in names]
        if not found:
            return request, ()
        return replace(request, headers=headers, trailers=trailers, target=target), tuple(found)

    def response_headers(self, headers: Headers) -> tuple[Headers, tuple[Redaction, ...]]:
        """Give a response's header fields without their secrets, and where they were.

        Of a `set-cookie` the first value is replaced, its attributes stay.
        """
        kept, found = self._fields(headers, "response.header.", self._in_response)
        return (kept, tuple(found)) if found else (headers, ())

    def redacted_query(self, request: Request) -> frozenset[str]:
        """Give the lower-case names of a request's query keys whose values count by their kind alone.

        The same for a request and its redacted copy.
        """
        query = request.target.partition("?")[2]
        if not query:
            return _NONE
        names: set[str] = set()
        for part in query.split("&"):
            name, _, value = part.partition("=")
            name = _plain(name)
            if name in self._query and (
                name != "key"
                or name in self._keys
                or _CREDENTIAL.fullmatch(value)
                or _GOOGLE.search(request.host)
            ):
                names.add(name)
        return frozenset(names)

    def _find_in_response(self, name: bytes) -> str | None:
        # The table alone: an answer's `x-next-token` has to come back as it was.
        lower = name.decode("latin-1").lower()
        if lower in HEADERS:
            return HEADERS[lower]
        if lower in self._headers:
            return CONFIGURED
        if lower == "sec-websocket-protocol":
            return _PROTOCOLS
        return _URL if lower in URL_HEADERS else None

    def _find_in_request(self, name: bytes) -> str | None:
        lower = name.decode("latin-1").lower()
        found = self._find_in_response(name)
        if found or not _LIKE_A_SECRET.search(lower) or _HARMLESS.search(lower):
            return found
        return KEY if lower.endswith("key") else TOKEN

    def _fields(
        self, headers: Headers, place: str, kind_of: Callable[[bytes], str | None]
    ) -> tuple[Headers, list[Redaction]]:
        found: list[Redaction] = []
        kept: list[tuple[bytes, bytes]] | None = None
        for index, (name, value) in enumerate(headers):
            kind = kind_of(name)
            if kind is None:
                continue
            lower = name.decode("latin-1").lower()
            if kind is _URL:
                new, names = self._url(value)
                kinds = [one for _, one in names]
            elif kind is _PROTOCOLS:
                new, kinds = self._protocols(value), [TOKEN]
            elif lower.startswith("set-cookie"):
                first, semicolon, attributes = value.partition(b";")
                new, kinds = self._pair(first) + semicolon + attributes, [COOKIE]
            else:
                new, kinds = self.placeholder(kind, value), [kind]
            if new == value:
                continue
            if kept is None:
                kept = list(headers)
            kept[index] = (name, new)
            found += [Redaction(place + lower, one) for one in dict.fromkeys(kinds)]
        return (tuple(kept) if kept is not None else headers), found

    def _protocols(self, value: bytes) -> bytes:
        """Replace the secrets among subprotocols, where browsers have to put them."""
        parts = value.split(b",")
        for index, part in enumerate(parts):
            marked = _MARKED.fullmatch(part)
            if marked:
                parts[index] = marked[1] + self._made(TOKEN, marked[2])
            elif _BARE.fullmatch(part) or (index and _MARK.fullmatch(parts[index - 1].strip())):
                parts[index] = self._made(TOKEN, part)
        return b",".join(parts)

    def _url(self, url: bytes) -> tuple[bytes, list[tuple[str, str]]]:
        """Replace the secrets of a URL or target; give the names and kinds of what was replaced."""
        found: dict[tuple[str, str], None] = {}
        user = _USER.match(url)
        if user:
            names = user[2].split(b":")
            url = (
                user[1]
                + b":".join([self._in_url(AUTHORIZATION, n) for n in names])
                + url[user.end(2) :]
            )
            found[("userinfo", AUTHORIZATION)] = None
        # Tokens stand in the fragment too: RFC 6749 section 4.2.2.
        pieces = _DELIMITER.split(url)
        for index in range(2, len(pieces), 2):
            name, eq, value = pieces[index].partition(b"=")
            plain = _plain(name.decode("latin-1"))
            kind = self._query.get(plain)
            if kind and value:
                pieces[index] = name + eq + self._in_url(kind, value)
                found[(plain, kind)] = None
        return b"".join(pieces), list(found)

    def _authorization(self, value: bytes) -> bytes:
        scheme, space, rest = value.partition(b" ")
        word = scheme.decode("latin-1").lower()
        if not space or word not in _SCHEMES:
            return self._made(AUTHORIZATION, value)
        if word not in _WITH_PARAMETERS:
            return scheme + space + self._made(AUTHORIZATION, rest)
        parts = []
        for part in rest.split(b","):
            found = _PARAMETER.fullmatch(part)
            name, secret = (found[1], found[2]) if found else (b"", part)
            parts.append(name + self._made(AUTHORIZATION, secret))
        return scheme + space + b",".join(parts)

    def _pair(self, part: bytes) -> bytes:
        name, eq, value = part.partition(b"=")
        # Without a name it is all value; so it is where the sign is only the padding of one.
        if not eq or (len(name) >= _LONG_NAME and not value.strip(b"= ")):
            return self._in_url(COOKIE, part)
        return name + eq + self._in_url(COOKIE, value)

    def _stream(self, kind: str, value: bytes) -> bytes:
        seed = hmac.digest(self._key, kind.encode() + b"\0" + value, "sha256")
        return shake_256(seed).digest(len(value)) if len(value) > len(seed) else seed

    def _make(self, kind: str, value: bytes) -> bytes:
        stream = self._stream(kind, value)
        return bytes([_ROWS[code][by] for code, by in zip(value, stream, strict=False)])

    def _in_url(self, kind: str, value: bytes) -> bytes:
        """Replace a value in which percent-encodings stand: what is encoded is replaced, or stays."""
        if b"%" not in value:
            return self._made(kind, value)
        units = [
            (unit, int(unit[1:], 16) if len(unit) == 3 else unit[0])
            for unit in _UNIT.findall(value)
        ]
        plain = bytes([code for _, code in units])
        parts = []
        for (unit, code), new in zip(units, self._made(kind, plain), strict=True):
            if code == new:
                parts.append(unit)
            elif len(unit) == 1:
                parts.append(bytes([new]))
            else:
                parts.append(b"%%%02x" % new if unit[1:].islower() else b"%%%02X" % new)
        return b"".join(parts)


def _plain(name: str) -> str:
    return (unquote_plus(name) if "%" in name or "+" in name else name).lower()
