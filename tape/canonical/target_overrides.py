"""What a request's head says of its host, method and path beside the places where these belong.

A request names its host in its tunnel, in TLS, in `Host` or `:authority` and in an absolute target; servers and frameworks
obey further fields. Each such word that says something else than the request's own place is a **claim**. A request without
claims, as nearly all are, means what it says.

Names are compared in normal form (`config.targets.hosts`): case, a trailing dot and the scheme's own port make no
difference, and a name that is absent agrees where another one is there: without `Host` and `:authority` a server takes its default.

Fields that override are recognised by the words in their names, not by a list of names; in trailers they count as in the head. A
field whose value contains an absolute URL names a host too, since gateways are given the real target in a field of their
own; a few fields with URLs that nobody obeys are left out. A body that may contain such a word and cannot be read claims
`ANY_METHOD`.

Source: RFC 9110 section 7.2, RFC 9113 section 8.3.1, RFC 7239 for `Forwarded`; Rack, Symfony, Laravel, Express, ASP.NET and
Facebook's Graph API for overrides of methods, PHP for the names of parameters, IIS, Symfony, nginx, Traefik and Envoy for
paths.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ...config.targets.host_interpretations import (
    NO_PORT,
    Place,
    host_readings,
    is_anywhere,
    places,
)
from ...config.targets.path_interpretations import decode, split_pairs, upper_triplets
from ...config.targets.request_interpretations import ANY_METHOD, ANY_PATH, NO_MORE, More
from ..exchange import Headers, HttpRequest, Request
from ..headers.shipped_lists import STDIO_COMMAND
from ..records.content_coding import undo_coding
from .json_rpc_client_ids import STDIO_HOST


class ClaimKind(StrEnum):
    """Where a claim stands."""

    SNI = "sni"
    AUTHORITY = "authority"
    """`:authority` of HTTP/2."""
    TARGET = "target"
    """An absolute target."""
    HOST = "host"
    UNNAMED = "unnamed"
    """None of them: a server takes its default host for it."""
    FORWARDED = "forwarded"
    """A field that some servers take for `Host`."""
    GATEWAY = "gateway"
    """A field by whose name a gateway takes its value for the real target."""
    URL = "url"
    """A field that contains an absolute URL of another host; in matching it does not count."""
    METHOD = "method"
    """A field or parameter that some servers take for the method."""
    PATH = "path"
    """A field that some servers take for the path."""
    SCHEME = "scheme"
    """The scheme of an absolute target or `:scheme`, or a field that some servers take for it."""
    WEBSOCKET = "websocket"
    """It asks for a WebSocket, over which anything may be said."""


SILENT = frozenset({ClaimKind.WEBSOCKET.value})
"""Kinds that say nothing else than the request itself."""
_UNCOUNTED = frozenset({ClaimKind.WEBSOCKET, ClaimKind.URL})
"""Kinds that do not count in matching: an address for an answer to go to may have another port in each run."""


class Claim(NamedTuple):
    """One word that says something else."""

    kind: ClaimKind
    text: str


Claims = tuple[Claim, ...]
_UNNAMED = Claim(ClaimKind.UNNAMED, "")
_WEBSOCKET = Claim(ClaimKind.WEBSOCKET, "")
"""Of a head that speaks of a WebSocket, and that a server answers as a plain request."""
_HANDSHAKE = Claim(ClaimKind.WEBSOCKET, "handshake")
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
"""Of a handshake: 16 bytes in base64. Source: RFC 6455 section 4.1."""

_METHODS = frozenset(
    {"ACL", "BIND", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "MERGE", "MKCOL"}
    | {"MOVE", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY"}
    | {"REPORT", "SEARCH", "TRACE", "UNLINK", "UNLOCK"}
)
"""Methods in their normal form; any other word in the place of one may be any of them, for some server."""
_OVERRIDES = re.compile(r"override|httpmethod|^x?method$|realmethod")
_AROUND_METHOD = re.compile(r"^[^A-Za-z]+|[^A-Za-z]+$", re.ASCII)
_METHOD_NAME = re.compile(r"method|verb(?!os)")
_PREFLIGHT = "accesscontrolrequestmethod"
_PARAMETER = re.compile(r"_+(?:http_?)?method_*|_*x_(?:http_)?method(?:_override)?_*")
_PLACED = re.compile(
    r"forward|orig|rewrit|overrid|replace|request|real|accel|http|envoy|tunnel|virtual|vhost|proxied|full"
)
_PATH_WORDS = re.compile(
    r"overrid.*(?:path|url|uri|route)$|(?:path|url|uri|route)overrid|^x?(?:path|url|uri|route|rewrite)$"
    r"|(?:proxy|dest|remote|encoded|base|api|url).*path$|encodedur[li]$|pathinfo$"
)
"""Names that say nothing else than that they are the path, in any order of their words."""
_LEADS = r"(?:proxy|connect|tunnel|forward|forwarded)to"
_GATEWAY = re.compile(
    rf"target|upstream|backend|gateway|destination|provider|endpoint|routeto|{_LEADS}|proxypass|resource"
    r"|(?:custom|base|api|dest|proxy|remote|server|service|route|litellm|aig|portkey|helicone).*(?:host|url|uri|base)"
)
_ADDRESS = re.compile(
    r"(?:host|url|uri|path|(?<!data)base|addr|address|authority|endpoint|target|upstream|backend|destination|server"
    rf"|routeto|{_LEADS})(?:e?s|encoded)?\d*$"
)
"""How a name of such a field ends if its value is an address, in whatever form the gateway wants it."""
_LABELS = re.compile(rf"(?:url|uri|path|base|server|{_LEADS})(?:s|encoded)?\d*$")
"""How it ends if a word alone is no address: it is one in a form that nobody here can read."""
_REST = r"""[^\s"'<>\\{}|^`]*"""
_CLEAN_URL = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~:%@\[\]-]+(?:[/?#]{_REST})?", re.ASCII
)
_CLEAN_PATH = re.compile(rf"/(?!/){_REST}")
_CLEAN_HOST = re.compile(
    r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\.?|localhost|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_-]+(?=:\d))"
    rf"(?::\d{{1,5}})?(?:[/?#]{_REST})?",
    re.ASCII,
)
_NAME = re.compile(r"(?:[^\s/?#@:,;=\"'<>\\%{}|^`()*&$!+]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
"""A name of a host as servers write it, in whatever script; any other text in its place may be any."""
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|\d{8,}")
"""An IPv4 address as one number."""
_WORD = re.compile(r"[a-z0-9_-]{1,63}|[A-Z0-9_-]{1,63}", re.ASCII)
_ANY_HOST = "*"
"""A name that may be any: no host has this character."""
_NO_GATEWAY = frozenset({"xamztarget", "proxyauthorization"})
"""`X-Amz-Target` names an operation, in the form of a host name."""
_COPY_TO = "destination"
"""Of WebDAV: what a COPY or MOVE makes (RFC 4918 section 10.3), so its path is no path of the request."""
_HARMLESS = frozenset(
    {
        "referer",
        "httpreferer",
        "origin",
        "useragent",
        "from",
        "accept",
        "contenttype",
        "soapaction",
        "cookie",
    }
    | {
        "link",
        "authorization",
        "proxyauthorization",
        "acceptprofile",
        "contentprofile",
        "idempotencykey",
    }
)
"""Fields that nobody takes for a target, whatever URL is in them."""
_URLS = re.compile(r"""([A-Za-z][A-Za-z0-9+.-]*):[\\/]{2,}([^\s/?#"'<>,;{}\\]*)""")
_URL_PATHS = re.compile(
    r"""([A-Za-z][A-Za-z0-9+.-]*):[\\/]{2,}[^\s/?#"'<>,;{}\\]*([/\\;][^\s"'<>{}]*)?"""
)
"""The scheme and the path of each absolute URL, with its query."""
_SLASHES = re.compile(rb"[\\/]{2}|%2[fF]|%5[cC]")
"""All that an absolute URL in a field has, however it is written."""
_WITHOUT_URLS = (None, ClaimKind.METHOD, ClaimKind.SCHEME)
"""Kinds of fields whose URLs are read for themselves."""
_WHOLLY_READ = (ClaimKind.HOST, ClaimKind.WEBSOCKET, ClaimKind.FORWARDED, ClaimKind.PATH)
"""Kinds of fields of whose values nothing is left over."""
_RELATIVE_URL = re.compile(r"""[\s"'<]*(?:[\\]?/){2}([^\s/?#"'<>,;{}\\]+)""")
_BARE_HOST = re.compile(
    r"""[\s"'<]*((?:[^\s/?#"'<>,;@:]+\.[A-Za-z][\w-]+\.?|localhost|[\d.]+\.\d+|\[[0-9a-fA-F:.]+\])(?::\d+)?|[\w.-]+:\d{1,5})"""
    r"""(?:[\s"'>/?#,;].*)?""",
    re.DOTALL,
)
_WEB_SCHEMES = {"ws": "http", "wss": "https"}
_SCHEMES = re.compile(r"(?:forward|orig|url|http|^x).*(?:proto|scheme)|^(?:proto|protocol|scheme)$")
_SECURE = frozenset({"frontendhttps", "xforwardedssl", "xforwardedhttps", "xhttps"})
_ON = frozenset({"on", "1", "true", "yes"})
_WRITTEN = frozenset({"http", "https"})
_NOT_WORDS = re.compile(r"[^a-z0-9]+")
_FORWARDED_HOST = re.compile(r'(?:^|[;,])\s*host\s*=\s*("[^"]*"|[^;,\s]*)', re.IGNORECASE)
_FORWARDED_SCHEME = re.compile(r'(?:^|[;,])\s*proto\s*=\s*"?(\w+)', re.IGNORECASE)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]*([^/\\?#]*)")
_DISPOSITION = b"content-disposition"
_PART_HEAD = re.compile(rb"(.{0,4096}?)\r?\n\r?\n([^\r\n]{0,40})", re.DOTALL)
_PART_NAME = re.compile(rb';[ \t\r\n]*name[ \t]*([^=]{0,8})=[ \t]*("(?:[^"\\]|\\.)*"|[^;\r\n]*)')
_MOST = 16
"""Claims of one request; who makes more says nothing that can be relied on, which the first of them says too."""
_FORM_BYTES = 8 * 1024 * 1024
"""Bytes of a form that are read; the length of a body that is held."""
_UNREAD = (Claim(ClaimKind.METHOD, ANY_METHOD),)
_FORMS = (b"form", b"multipart")
_ENVELOPES = (b"grpc", b"connect+")
_MOST_PAIRS = 20_000
_MOST_PARTS = 1_000
_MOST_DECODED = 8
_METHOD_IN_JSON = re.compile(
    rb'"(?:_|\\u005[fF])+(?:[mM]|\\u00[46][dD])(?:[eE]|\\u00[46]5)(?:[tT]|\\u00[57]4)(?:[hH]|\\u00[46]8)'
)


def find_claims(
    method: bytes | str,
    scheme: str,
    host: str,
    port: int,
    target: str,
    headers: Headers,
    names: Iterable[tuple[str, str]] = (),
    *,
    named: bool = False,
) -> Claims:
    """Find what a request's head claims.

    method: as sent.
    names: what TLS, `:authority` and an absolute target name, as kind and text, where that is not in `headers`.
    named: whether it has an `:authority` or absolute target, so that it needs no `Host`.
    """
    found: list[Claim] = []
    fields, named_here = _find_fields(tuple([name for name, _ in headers]))
    if not named and not named_here:
        found.append(_UNNAMED)
    if fields:
        found += _in_fields(fields, headers, scheme, host, port, target)
    if any(_may_have_url(value) for _, value in headers):
        found += _in_urls(headers, scheme, host, port)
    if names:
        found += [Claim(ClaimKind(kind), text) for kind, text in names]
    absolute = _ABSOLUTE.match(target) if target[:1] != "/" else None
    if absolute is not None and not agrees(absolute[1], scheme, host, port):
        found.append(Claim(ClaimKind.TARGET, absolute[1]))
    if "?" in target:
        found += _in_pairs(target.partition("?")[2])
    sent = method if isinstance(method, str) else method.decode("latin-1")
    if not sent.isupper() and sent != sent.upper():
        found.append(Claim(ClaimKind.METHOD, sent))
    return tuple(dict.fromkeys(found[:_MOST])) if found else ()


_Fields = tuple[tuple[int, ClaimKind, str], ...]


@lru_cache(maxsize=1024)
def _find_fields(names: tuple[bytes, ...]) -> tuple[_Fields, bool]:
    """Find which fields of a head may claim something, with their names squashed, and whether one is `Host`.

    Remembered: clients send the same fields again and again.
    """
    found = []
    for at, name in enumerate(names):
        squashed = _squash(name)
        kind = _kind_of(name.lower(), squashed)
        if kind is not None:
            found.append((at, kind, squashed))
    return tuple(found), any(kind is ClaimKind.HOST for _, kind, _ in found)


def is_override(name: bytes) -> bool:
    """Say whether `names_of` has all that a field says, for its lower-case name: it names a host and nothing else."""
    return name != b"forwarded" and _kind_of(name, _squash(name)) is ClaimKind.FORWARDED


def is_read_by_name(name: bytes) -> bool:
    """Say whether all that a field of this lower-case name may say is known, and among a request's claims."""
    squashed = _squash(name)
    return squashed in _HARMLESS or _kind_of(name, squashed) in _WHOLLY_READ


def _kind_of(name: bytes, squashed: str) -> ClaimKind | None:
    """Say what a header field may claim, by the words in its name."""
    if name == b"host":
        return ClaimKind.HOST
    if name == b"upgrade":
        return ClaimKind.WEBSOCKET
    if name == b"forwarded" or squashed.endswith(("forwardedserver", "forwardedport")):
        return ClaimKind.FORWARDED
    if squashed == "xhost" or ("host" in squashed and _PLACED.search(squashed)):
        return ClaimKind.FORWARDED
    if squashed in _SECURE or _SCHEMES.search(squashed):
        return ClaimKind.SCHEME
    if _METHOD_NAME.search(squashed) and squashed != _PREFLIGHT:
        return ClaimKind.METHOD
    if squashed in _NO_GATEWAY:
        return None
    if squashed == "scriptname" or squashed.endswith("forwardedprefix"):
        return ClaimKind.PATH
    if squashed.endswith(("url", "uri", "path")) and _PLACED.search(squashed):
        return ClaimKind.PATH
    if _PATH_WORDS.search(squashed):
        return ClaimKind.PATH
    if _GATEWAY.search(squashed) and squashed not in _HARMLESS:
        return ClaimKind.GATEWAY
    return None


def _in_fields(
    fields: _Fields, headers: Headers, scheme: str, host: str, port: int, target: str
) -> Iterator[Claim]:
    """Give the claims of the fields that may make one."""
    for at, kind, name in fields:
        value = headers[at][1].decode("latin-1")
        if kind is ClaimKind.HOST:
            if not agrees(value, scheme, host, port):
                yield Claim(kind, value)
        elif kind is ClaimKind.WEBSOCKET:
            if "websocket" in value.lower():
                yield _HANDSHAKE if _is_handshake(headers) else _WEBSOCKET
        elif kind is ClaimKind.GATEWAY:
            yield from _urls_in(kind, value, scheme, host, port)
            for other, said in _URL_PATHS.findall(value) if name != _COPY_TO else ():
                yield from _scheme_said(other, scheme)
                yield from _base_said(name, said, scheme, host, port, target)
            if not _ADDRESS.search(name):
                bare = _BARE_HOST.fullmatch(value) if "//" not in value else None
                if bare is not None and not agrees(bare[1], scheme, host, port):
                    yield Claim(kind, bare[1])
            else:
                yield from _address_said(name, value, scheme, host, port, target)
        else:
            yield from _said(kind, name, value, scheme, host, port, target)


def _may_have_url(value: bytes) -> bool:
    # A pattern takes a while, and nearly no value of a field has any of these.
    if b"//" not in value and b"\\" not in value and b"%" not in value:
        return False
    return _SLASHES.search(value) is not None


def _in_urls(headers: Headers, scheme: str, host: str, port: int) -> Iterator[Claim]:
    """Give the hosts of the absolute URLs in fields that make no other claim."""
    for name, value in headers:
        if _may_have_url(value):
            if host == STDIO_HOST and name.lower() == STDIO_COMMAND:
                continue  # it says how a program was started, and goes to nobody
            squashed = _squash(name)
            if squashed not in _HARMLESS and _kind_of(name.lower(), squashed) in _WITHOUT_URLS:
                text = value.decode("latin-1")
                yield from _urls_in(ClaimKind.URL, text, scheme, host, port)
                if "%" in text:
                    yield from _urls_in(ClaimKind.URL, fully_decoded(text), scheme, host, port)


def _urls_in(kind: ClaimKind, text: str, scheme: str, host: str, port: int) -> Iterator[Claim]:
    """Give the hosts of the absolute URLs in a text that are not the request's own."""
    for found in _URLS.finditer(text):
        own = _WEB_SCHEMES.get(found[1].lower(), found[1].lower())
        if found[2] and not agrees(found[2], own, host, port):
            yield Claim(kind, found[2])
    relative = _RELATIVE_URL.match(text)
    if relative is not None and not agrees(relative[1], scheme, host, port):
        yield Claim(kind, relative[1])


def find_trailer_claims(request: HttpRequest) -> Claims:
    """Find what the trailers of a request claim: as the same fields would in its head."""
    return _in_trailers(
        request.trailers, request.scheme, request.host, request.port, request.target
    )


def _in_trailers(trailers: Headers, scheme: str, host: str, port: int, target: str) -> Claims:
    if not trailers:
        return ()
    fields, _ = _find_fields(tuple([name for name, _ in trailers]))
    found = [
        *_in_fields(fields, trailers, scheme, host, port, target),
        *_in_urls(trailers, scheme, host, port),
    ]
    return tuple(dict.fromkeys(found[:_MOST]))


def without_claims(trailers: Headers, scheme: str, host: str, port: int, target: str) -> Headers:
    """Give trailers without the fields that claim something."""
    return tuple(
        field for field in trailers if not _in_trailers((field,), scheme, host, port, target)
    )


def _squash(name: bytes) -> str:
    return _NOT_WORDS.sub("", name.decode("latin-1").lower())


def claims_of(request: HttpRequest) -> Claims:
    """Find what a whole request claims, by its head and as a form."""
    claims = find_claims(
        request.method,
        request.scheme,
        request.host,
        request.port,
        request.target,
        request.headers,
        request.names,
        named=request.http_version.startswith("HTTP/2"),
    )
    body = request.body if request.spilled is None else None
    more = find_body_claims(request.method, request.headers, body)
    if request.trailers:
        more = (*more, *find_trailer_claims(request))
    return (*claims, *more) if more else claims


def read_claims(rows: Iterable[tuple[str, str]]) -> Claims:
    """Read claims from an event; those of kinds that are not known are left out."""
    known = frozenset(ClaimKind)
    return tuple(Claim(ClaimKind(kind), text) for kind, text in rows if kind in known)


def _is_handshake(headers: Headers) -> bool:
    """Say whether any server takes a head for the handshake of a WebSocket. Source: RFC 6455 section 4.2.1."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value.strip())
    options = b",".join(found.get(b"connection", [])).lower().split(b",")
    keys = found.get(b"sec-websocket-key", [])
    return (
        [value.lower() for value in found.get(b"upgrade", [])] == [b"websocket"]
        and b"upgrade" in {option.strip() for option in options}
        and found.get(b"sec-websocket-version") == [b"13"]
        and len(keys) == 1
        and _KEY.fullmatch(keys[0]) is not None
    )


def find_body_claims(method: str, headers: Headers, body: bytes | None) -> Claims:
    """Find the method that a body claims: some frameworks obey a field `_method` of a form or of JSON.

    body: None where it cannot be read; then a form, or JSON, claims any method.
    """
    if body == b"":
        return ()
    types, codings = [], []
    for name, value in headers:
        if len(name) == 12 and name.lower() == b"content-type":
            types.append(value.lower())
        elif len(name) == 16 and name.lower() == b"content-encoding":
            codings.append(value)
    form = any(word in value for value in types for word in _FORMS)
    # Some take what has no type for a form, where it is posted.
    if not form and not types:
        form = method.upper() == "POST"
    if not form and not any(map(_is_json, types)):
        return ()
    if body is not None and codings:
        body = undo_coding(body, b",".join(codings), _FORM_BYTES)
    if body is None or len(body) > _FORM_BYTES:
        return _UNREAD
    return tuple(dict.fromkeys(_in_body(types, body)))[:_MOST]


def _is_json(content_type: bytes) -> bool:
    # Envelopes of streams are no JSON as a whole.
    return b"json" in content_type and not any(word in content_type for word in _ENVELOPES)


def _in_body(types: list[bytes], body: bytes) -> Iterator[Claim]:
    if not types or any(map(_is_json, types)):
        yield from _in_json(body)
    if any(b"multipart" in value or b"form-data" in value for value in types):
        yield from _in_parts(body)
    if not types or any(b"form" in value and b"form-data" not in value for value in types):
        yield from _in_pairs(body.decode("latin-1"))


def _in_json(body: bytes) -> Iterator[Claim]:
    """Give the methods that the first level of a JSON body claims."""
    if b"\0" in body[:4]:
        with suppress(UnicodeError):
            body = body.decode(json.detect_encoding(body)).encode()
    # Long words first, which are found fast: nearly no body holds either. Who reads JSON heeds case.
    if b"_method" not in body and b"\\u00" not in body:
        return
    if _METHOD_IN_JSON.search(body) is None:
        return
    try:
        found = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        yield from _UNREAD
        return
    for value in found if type(found) is list else [found]:
        for name, word in value if isinstance(value, _Pairs) else ():
            if _PARAMETER.fullmatch(_squashed(name)):
                yield from _methods_said(str(word)[:40])


class _Pairs(list[tuple[str, object]]):
    """An object of JSON with all its pairs."""


def _in_parts(body: bytes) -> Iterator[Claim]:
    """Give the methods that the parts of a multipart body claim."""
    lower = body.lower()
    if (
        b"method" not in lower
        and b"%" not in lower
        and b"name*" not in lower
        and b"=?" not in lower
    ):
        return
    at = -1
    for _ in range(_MOST_PARTS):
        at = lower.find(_DISPOSITION, at + 1)
        if at < 0:
            return
        part = _PART_HEAD.match(lower, at)
        if part is None:
            continue
        head = part[1]
        for more, quoted in _PART_NAME.findall(head):
            name = quoted.strip(b'"').replace(b"\\", b"").decode("latin-1")
            if more.strip() or "=?" in name:
                yield from _UNREAD
            else:
                said = tuple(_parameter_said(name, part[2].decode("latin-1")))
                yield from _UNREAD if said and b"content-transfer-encoding" in head else said
    yield from _UNREAD


def _methods_said(text: str, *, sure: bool = True) -> Iterator[Claim]:
    """Give the methods in the value of a field or parameter.

    A word that is no method as it is written may be one for a server that decodes, unquotes or cuts it: it may be any.

    sure: whether servers take the value for a method by its name; else only what is one in normal form counts.
    """
    for written in text.split(","):
        word = written.strip().upper()
        if word in _METHODS:
            yield Claim(ClaimKind.METHOD, word)
            if sure and written.strip() not in (word, word.lower()):
                yield from _UNREAD
        elif sure and word:
            yield Claim(ClaimKind.METHOD, word)
            yield from _UNREAD
        elif word and (plain := _AROUND_METHOD.sub("", fully_decoded(word)).upper()) in _METHODS:
            yield Claim(ClaimKind.METHOD, plain)


def _squashed(name: str) -> str:
    """Give the name of a parameter in lower case, with an underscore for all that is no letter or digit."""
    return _NOT_WORDS.sub("_", name.partition("\0")[0].strip().lower())


def fully_decoded(text: str) -> str:
    """Undo percent-encoding, as often as it was done and some more."""
    for _ in range(_MOST_DECODED):
        if "%" not in text:
            break
        text = decode(text)
    return text


def _parameter_said(name: str, value: str) -> Iterator[Claim]:
    """Give the methods that a parameter claims."""
    squashed = _squashed(fully_decoded(name))
    if "method" in squashed:
        yield from _methods_said(value, sure=_PARAMETER.fullmatch(squashed) is not None)


@lru_cache(maxsize=4096)
def agrees(name: str, scheme: str, host: str, port: int) -> bool:
    """Say whether a further name of a request, with its port, is its host."""
    return places(name, scheme) == tuple(Place(one, port) for one in host_readings(host))


@lru_cache(maxsize=4096)
def agrees_without_port(name: str, host: str) -> bool:
    """Say whether a name of TLS is a request's host."""
    return host_readings(name) == host_readings(host)


@lru_cache(maxsize=1024)
def claimed(claims: Claims, scheme: str, port: int) -> More:
    """Give what is claimed, as rules look at it."""
    if not claims:
        return NO_MORE
    methods: list[str] = []
    found: list[Place] = []
    paths: list[str] = []
    schemes: list[str] = []
    anywhere = websocket = handshake = False
    for kind, text in claims:
        if kind is ClaimKind.METHOD:
            methods.append(text)
        elif kind is ClaimKind.PATH:
            paths.append(text)
        elif kind is ClaimKind.SCHEME:
            schemes.append(text)
        elif kind is ClaimKind.WEBSOCKET:
            websocket, handshake = True, text == _HANDSHAKE.text
        elif kind is ClaimKind.UNNAMED:
            found.append(Place("", NO_PORT))
        else:
            anywhere = anywhere or is_anywhere(text)
            if kind is ClaimKind.SNI:
                found += [Place(one, port) for one in host_readings(text)]
            else:
                found += places(text, scheme)
    return More(
        tuple(methods), tuple(found), tuple(paths), tuple(schemes), anywhere, websocket, handshake
    )


def names_of(request: Request) -> tuple[str, ...]:
    """Give what a request's head says of its host, method, path and scheme beside, as it counts in matching."""
    fields, _ = _find_fields(tuple([name for name, _ in request.headers]))
    claims = list(request.names)
    if fields:
        said = _in_fields(
            fields, request.headers, request.scheme, request.host, request.port, request.target
        )
        claims += [(kind.value, text) for kind, text in said if kind not in _UNCOUNTED]
    if request.trailers:
        claims += [
            (kind.value, text)
            for kind, text in find_trailer_claims(request)
            if kind not in _UNCOUNTED
        ]
    return name_row(claims, request.scheme) if claims else ()


def name_row(claims: Iterable[tuple[str, str]], scheme: str) -> tuple[str, ...]:
    """Give claims in normal form, by their kinds, as they count in matching."""
    rows = []
    for kind, text in claims:
        if kind == ClaimKind.SNI:
            rows.append((kind, host_readings(text)[0]))
        elif kind == ClaimKind.PATH:
            rows.append((kind, upper_triplets(text)))
        elif kind in (ClaimKind.METHOD, ClaimKind.SCHEME) or _NAME.fullmatch(text) is None:
            rows.append((kind, text))
        else:
            place = places(text, scheme)[0]
            rows.append((kind, f"{place.host}:{place.port}"))
    # In the order in which they came within a kind: servers take the first, or the last.
    return tuple(f"{kind}={text}" for kind, text in sorted(rows, key=_first))


def _first(row: tuple[str, str]) -> str:
    return row[0]


def _said(
    kind: ClaimKind, name: str, text: str, scheme: str, host: str, port: int, target: str
) -> Iterator[Claim]:
    """Give the claims of one field, `name` squashed."""
    if kind is ClaimKind.METHOD:
        yield from _methods_said(text, sure=_OVERRIDES.search(name) is not None)
    elif kind is ClaimKind.PATH:
        if text.strip():
            yield from _path_said(name, text.strip(), scheme, host, port, target)
    elif kind is ClaimKind.SCHEME:
        word = text.strip().lower()
        said = "https" if word in _ON else "http" if name in _SECURE and word else text
        yield from _scheme_said(said, scheme)
    else:
        if name == "forwarded":
            for said in _FORWARDED_SCHEME.findall(text):
                yield from _scheme_said(said, scheme)
            named = _FORWARDED_HOST.findall(text)
        else:
            named = text.split(",")
        for one in named:
            one = one.strip().strip('"')
            if name.endswith("port"):
                one = f"[{host}]:{one}" if ":" in host else f"{host}:{one}"
            if one and not agrees(one, scheme, host, port):
                yield Claim(kind, one)
                if _NAME.fullmatch(one) is None:
                    yield Claim(kind, _ANY_HOST)


def _address_said(
    name: str, text: str, scheme: str, host: str, port: int, target: str
) -> Iterator[Claim]:
    """Give what an address in a field of a gateway claims beside its URLs: further hosts, a path, or anything."""
    for part in text.split(","):
        one = part.strip(" ")
        if not one or _CLEAN_URL.fullmatch(one):
            continue
        if _CLEAN_PATH.fullmatch(one):
            if name != _COPY_TO:
                yield from _path_said(name, one, scheme, host, port, target)
        elif (
            _CLEAN_HOST.fullmatch(one)
            or _NUMBER.fullmatch(one)
            or (_WORD.fullmatch(one) and name.endswith("host"))
        ):
            found = re.split(r"[/?#]", one, maxsplit=1)[0]
            if not agrees(found, scheme, host, port):
                yield Claim(ClaimKind.GATEWAY, found)
            yield from _base_said(name, one[len(found) :], scheme, host, port, target)
        elif not _WORD.fullmatch(one) or _LABELS.search(name):
            yield Claim(ClaimKind.GATEWAY, _ANY_HOST)
            yield Claim(ClaimKind.PATH, ANY_PATH)


def _path_said(
    name: str, text: str, scheme: str, host: str, port: int, target: str
) -> Iterator[Claim]:
    """Give what a field claims of the path: itself, what its query says of the method, and its host."""
    if name == "scriptname" or name.endswith("prefix"):
        text = f"{text.rstrip('/')}{target}"
    yield Claim(ClaimKind.PATH, text)
    if "," in text or not (_CLEAN_PATH.fullmatch(text) or _CLEAN_URL.fullmatch(text)):
        yield Claim(ClaimKind.PATH, ANY_PATH)
        yield Claim(ClaimKind.FORWARDED, _ANY_HOST)
    yield from _in_pairs(text.partition("?")[2])
    absolute = _ABSOLUTE.match(text)
    if absolute is not None and absolute[1] and not agrees(absolute[1], scheme, host, port):
        yield Claim(ClaimKind.FORWARDED, absolute[1])


def _base_said(
    name: str, path: str, scheme: str, host: str, port: int, target: str
) -> Iterator[Claim]:
    """Give what the path of an address in a field of a gateway claims: to be the path, or what the path is put behind."""
    if path.startswith(("/", "\\", ";")) and path not in ("/", target):
        yield from _path_said(name, path, scheme, host, port, target)
        yield Claim(ClaimKind.PATH, f"{re.split('[?#]', path, maxsplit=1)[0].rstrip('/')}{target}")


def _scheme_said(text: str, scheme: str) -> Iterator[Claim]:
    for word in text.lower().split(","):
        word = word.strip().replace("ws", "http", 1) if word.strip()[:2] == "ws" else word.strip()
        if word in _WRITTEN and word != scheme.lower():
            yield Claim(ClaimKind.SCHEME, word)


def _in_pairs(text: str) -> Iterator[Claim]:
    """Give the methods that the pairs of a query or form claim."""
    if not text or ("%" not in text and "method" not in text.lower()):
        return
    if text.count("&") + text.count(";") > _MOST_PAIRS:
        yield from _UNREAD
        return
    for pair in split_pairs(text):
        name, _, value = pair.partition("=")
        if not value or ("%" not in name and "method" not in name.lower()):
            continue
        yield from _parameter_said(name.replace("+", " "), decode(value.replace("+", " ")))
