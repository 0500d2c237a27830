"""The canonical form of a request, and the fingerprint by which a tape finds it.

Rules:

1. Two requests with one canonical form are the same question. When in doubt, they are two: a refused
   request can be explained, a stale answer cannot be noticed.
2. What counts: method, scheme, host with its port, what the head says of host, method, path and scheme beside
   (`target_overrides.py`), path, query as pairs sorted by name, every header field and trailer that is not noise
   (`headers/compared_fields.py`), and the body by its type: JSON as a value (`canonical/json.py`), a form as its pairs in order,
   multipart without its boundary and those inside it, anything else as bytes. A request of class `telemetry` counts by method
   and URL without its query alone.
3. Masks come from declared rules only: the shipped ones below, those of the configuration, and those of the profile of the
   client that asks. A masked or secret place counts by being there. Of an effect no profile leaves anything out.
4. A body that is broken, too large or nested too deep counts as bytes: no body makes this raise.
5. Whatever `canonical` reads before it parses stands in `raw_key` too, so equal keys mean equal forms
   under the same rules, and bytes seen before need no parsing.

The form is versioned: any change to what a request becomes is a new `CANONICAL_VERSION`. Version 3 leaves out the
ids of JSON-RPC that a client gives (`json_rpc_client_ids.py`), the layout of GraphQL documents (`graphql.py`), and what patterns mask (`regex_masks.py`); version 4 has kinds in the place of secrets in bodies and paths (`compare_placeholders.py`).
Version 5 reads patterns as RE2 does, keeps the order of what has one name in a query, and leaves out boundaries inside
others and the signatures of `aws-chunked` uploads. Version 6 has the names of a request's host that do not agree; version 7
has all that its head says of host, method, path and scheme beside; version 8 has every header field and trailer that is not
noise, marks in the place of ids of runs that are linked, what trailers say of host, method, path and scheme, and the target that
a field names for a gateway, without the secrets of a query in a field; version 9 has the boundary of a multipart body that
readers may read in several ways; version 10 has every `upgrade` but an offer of HTTP/2, and not the names of blocks
(`azure_block_names.py`); version 11 has marks in the place of numbers that were replaced; version 12 has marks in the place of secrets in
header fields that count (`header_secret_places.py`); version 13 has what the profile of a client leaves out (`client_profiles.py`);
version 14 has marks in the place of user and password of a URL in a field, of credentials among subprotocols of a WebSocket, and of
the hash of what was not searched; version 15 has as effects what only a path called a model call or telemetry; version 16 has broken
percent-encodings as they were written, the ids of a JSON-RPC batch in which two calls have one, and realm, algorithm and quality of
protection of HTTP Digest; version 17 has the date in a URL that nobody has signed, and not what google-cloud-storage draws for each
call of a batch; version 19 has each value of a query key by itself, where only some of them are credentials.

Source: what 57 real clients send twice for the same task. RFC 3986 section 6.2.2 for URLs, RFC 9110
section 8.3 for content types, RFC 2046 section 5.1 for multipart, the URL Standard section 5 for forms.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import quote_plus, unquote_plus, unquote_to_bytes

from blake3 import blake3

from ...config.match_pattern import parse_match
from ...config.parse_values import parse_json_path
from ...config.profiles.client_profile import Profile
from ...config.profiles.shipped_profiles import find_profiles
from ...config.schema import Config, IgnoreRule
from ...config.targets.path_interpretations import normal_path, without_trailing
from ..exchange import ANOTHER, Fingerprint, Headers, HttpRequest, Request, RequestClass
from ..headers.authorization import is_empty
from ..headers.compared_fields import (
    LINKED,
    MASKED,
    CountedFields,
    FieldRules,
    Linked,
    Space,
    count_fields,
    places_without_noise,
)
from ..headers.shipped_lists import (
    HOSTS_OF_MEMBERS,
    NEW_CONDITIONS,
    is_key_of_effect,
    may_have_key,
)
from ..records.content_coding import undo_coding
from ..records.redacted_value_spelling import UNRESERVED
from ..redaction.compare_placeholders import mark_fields, mark_request
from ..redaction.credential_fields import SECRET, is_account, kind_of_header, nth_value, query_kind
from ..redaction.header_secret_places import is_marked, mark_header_places
from . import graphql
from . import regex_masks as patterns
from .azure_block_names import find_block_names, without_block_names
from .client_profiles import (
    NO_PROFILES,
    ClientProfiles,
    PlacedField,
    compile_profiles,
    find_product,
    mask_field,
)
from .json import JsonPath, Reading, Reduced, Swap, canonical_json, json_tree
from .json_rpc_client_ids import volatile_places
from .multipart_delimiters import BOUNDARY, is_plain_boundary, replace_delimiters
from .random_boundaries import without_inner, without_signatures
from .target_overrides import is_override, names_of

CANONICAL_VERSION = 19

MAX_PARSED = 16 * 1024 * 1024
"""Bytes of a body beyond which it is not parsed."""

MAX_PAIRS = 20_000
"""Pairs of a form beyond which it is not parsed."""

_LONG_PLACE = 1000
"""Characters of a path beyond which what the rules say of it is not remembered."""

MARKER = "\x00"
"""Begins what stands in a canonical form for a value that does not count; no URL or form holds NUL."""

TRAILER = b"trailer "
"""Begins the name of a trailer among header fields, of which none has a space."""

SPILLED = b"\x00spilled "
"""Stands with its hash for a body that is too large to be held."""

_CONTENT = (b"content-type", b"content-encoding")
_READ_LENGTHS = frozenset(map(len, _CONTENT))
_LINKED_BYTES = 12
"""Bytes of an id of a run from which on it is looked for in the body."""
_LINKED = b"linked\x7fvalue"
"""Stands in a body for such an id; no document holds DEL in a text of its own."""
_NONE: frozenset[str] = frozenset()
SHIPPED_FIELDS = FieldRules(credential=kind_of_header, named=is_override, account=is_account)
"""What each header field is without a configuration."""

_SIGNED = ("X-Amz-Date", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token")
_SIGNED_V2 = ("AWSAccessKeyId", "Signature", "Expires")

DEFAULT_IGNORE: tuple[IgnoreRule, ...] = (
    # openai-agents makes a new one for every run, at OpenAI's own host.
    IgnoreRule(parse_match("*://*/*v1/responses"), json=("$.prompt_cache_key",)),
    IgnoreRule(parse_match("*://*/*chat/completions"), json=("$.prompt_cache_key",)),
    # What a realtime client calls its event: random, or a count that depends on which came first.
    IgnoreRule(parse_match("*://*/*v1/realtime"), json=("$.event_id",)),
    IgnoreRule(parse_match("*://*/openai/realtime"), json=("$.event_id",)),
    # Idempotency keys, of which `matching/idempotency_keys.py` compares which effects share one.
    *(
        IgnoreRule(
            parse_match(host), json=tuple(f"$['{name}']" for name in names), query=names, form=names
        )
        for host, names in HOSTS_OF_MEMBERS
    ),
    # When the SDK asked for feature flags (posthog 7, `request.post`).
    IgnoreRule(parse_match("POST *://*.posthog.com/flags*"), json=("$.sentAt",)),
    IgnoreRule(parse_match("POST *://*.posthog.com/decide*"), json=("$.sentAt",)),
    # Signatures in a URL, and the dates they are made with.
    IgnoreRule(parse_match("*://*/*?*X-Amz-Signature=*"), query=_SIGNED),
    IgnoreRule(parse_match("*://*/*?*x-amz-signature=*"), query=tuple(map(str.lower, _SIGNED))),
    IgnoreRule(
        parse_match("*://*/*?*X-Goog-Signature=*"),
        query=("X-Goog-Date", "X-Goog-Signature", "X-Goog-Credential"),
    ),
    IgnoreRule(parse_match("*://*.amazonaws.com"), query=_SIGNED_V2),
    # At any other host that speaks S3, by the key that is named beside.
    IgnoreRule(parse_match("*://*/*?*AWSAccessKeyId=*"), query=_SIGNED_V2),
    IgnoreRule(parse_match("*://*.cloudfront.net"), query=("Expires", "Policy", "Signature")),
    IgnoreRule(
        parse_match("*://*.core.windows.net"), query=("sig", "se", "st", "ske", "skt", "skoid")
    ),
)
"""Shipped volatile places; a configuration adds to them."""


class BodyKind(StrEnum):
    """How a body is compared."""

    NONE = "none"
    JSON = "json"
    FORM = "form"
    MULTIPART = "multipart"
    TEXT = "text"
    """Bytes in which patterns are masked, with markers and doubled NUL."""
    BYTES = "bytes"


class Masks(NamedTuple):
    """Places of one endpoint that do not count."""

    json: tuple[JsonPath, ...] = ()
    header: frozenset[bytes] = frozenset()
    """Lower case."""
    query: frozenset[str] = frozenset()
    form: frozenset[str] = frozenset()
    regex: patterns.Patterns = ()
    placed: tuple[patterns.Placed, ...] = ()
    """What the profile of the client leaves out of a JSON body."""
    fields: tuple[PlacedField, ...] = ()
    """The same of header fields."""
    unconditional: bool = False
    """Whether its profile has an answer in full answer a GET with other conditions."""


NO_MASKS = Masks()


class Endpoint(NamedTuple):
    """What is known of a request before its query, head and body are read."""

    authority: str
    """Lower-case host and its port, always."""
    path: str
    masks: Masks


class ContentType(NamedTuple):
    """What a content type means for comparison."""

    form: bytes
    """As it is compared: lower case, parameters sorted, without boundary."""
    kind: BodyKind
    boundary: bytes


@dataclass(frozen=True, slots=True)
class Rules:
    """Which places of which requests are left out of the comparison; made by `compile_rules`."""

    ignore: tuple[IgnoreRule, ...]
    digest: bytes
    """16 bytes over the rules and the version of the canonical form: an index made under another digest
    has to be made again."""
    endpoint: Callable[[str, str, str, int, str, str], Endpoint] = field(compare=False, repr=False)
    """By method, scheme, host, port, path and name of the client's profile; remembered for the endpoints asked last."""
    by_target: bool = field(compare=False, repr=False, default=False)
    """A rule looks at the query, so `endpoint` wants the target instead of the path."""
    searched: patterns.Patterns = field(compare=False, repr=False, default=())
    """All patterns; each has the rules' clock, and notes when it ran out of time."""
    fields: FieldRules = SHIPPED_FIELDS
    """What each header field is."""

    profiles: ClientProfiles = NO_PROFILES
    """Of the clients that are known."""

    def of(self, request: Request, request_class: RequestClass = RequestClass.READ) -> Endpoint:
        """Give what the rules say of a request.

        request_class: of an effect no profile says anything.
        """
        client = ""
        if self.profiles and request_class is not RequestClass.EFFECT:
            found = self.profiles.find(request)
            client = found.name if found is not None else ""
        place = request.target if self.by_target else request.target.partition("?")[0]
        return self.endpoint(
            request.method, request.scheme, request.host, request.port, place, client
        )

    def without_links(self) -> "Rules":
        """Give these rules under which it does not count which values of linked places of a body are the same."""

        def endpoint(
            method: str, scheme: str, host: str, port: int, place: str, client: str
        ) -> Endpoint:
            found = self.endpoint(method, scheme, host, port, place, client)
            placed = tuple([one._replace(linked=False) for one in found.masks.placed])
            return found._replace(masks=found.masks._replace(placed=placed))

        return replace(self, endpoint=endpoint)


class Canonical(NamedTuple):
    """What is kept of a request for comparison."""

    method: str
    scheme: str
    authority: str
    path: str
    query: tuple[str, ...]
    """`name=value` or `name`, sorted by name, of one name in their order; a value that does not count is NUL and its kind."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Lower-case names in their order, with values or marks."""
    kind: BodyKind
    body: bytes
    names: tuple[str, ...] = ()
    """What its head says beside: names of its host that do not agree with `authority`, and fields that override."""
    blocks: tuple[str, ...] = ()
    """Names of blocks, which count for the effect key alone: a block that is sent under another name is no duplicate."""
    keyless: tuple[BodyKind, bytes] | None = None
    """Of an effect whose body has an idempotency key: the body without it, which counts for the effect key alone."""


def compile_rules(
    config_ignore: tuple[IgnoreRule, ...] = (),
    clock: patterns.Clock | None = None,
    fields: FieldRules = SHIPPED_FIELDS,
    profiles: Sequence[Profile] = (),
) -> Rules:
    """Give the shipped rules with a configuration's own.

    clock: limits how long patterns look at one request.
    fields: what each header field is (`find_field_rules`).
    profiles: of the clients that are known.
    Raises: ValueError for a JSON path or a pattern that is none; a loaded configuration holds only good ones.
    """
    ignore = (*DEFAULT_IGNORE, *config_ignore)
    made = {text: patterns.Pattern(text, clock) for rule in ignore for text in rule.regex}
    compiled = tuple(
        (
            rule.match,
            Masks(
                tuple(parse_json_path(path) for path in rule.json),
                frozenset(name.lower().encode() for name in rule.header),
                frozenset(rule.query),
                frozenset(rule.form),
                tuple(made[text] for text in rule.regex),
            ),
        )
        for rule in ignore
    )

    clients = compile_profiles(profiles, clock, (SECRET, ANOTHER))

    def look_up(
        method: str, scheme: str, host: str, port: int, place: str, client: str
    ) -> Endpoint:
        found = [
            masks for match, masks in compiled if match.matches(method, scheme, host, port, place)
        ]
        left_out = clients.of(client, (method, scheme, host, port, place))
        regex = tuple(dict.fromkeys(pattern for masks in found for pattern in masks.regex))
        path = normal_encodings(place.partition("?")[0])
        return Endpoint(
            f"[{host.lower()}]:{port}" if ":" in host else f"{host.lower()}:{port}",
            patterns.MASK.join(patterns.what_is_left(path, regex)) if regex else path,
            Masks(
                tuple(dict.fromkeys(path for masks in found for path in masks.json)),
                frozenset(name for masks in found for name in masks.header),
                frozenset(name for masks in found for name in masks.query),
                frozenset(name for masks in found for name in masks.form),
                regex,
                *left_out,
            ),
        )

    remembered = lru_cache(maxsize=4096)(look_up)

    def endpoint(
        method: str, scheme: str, host: str, port: int, place: str, client: str
    ) -> Endpoint:
        # A long path is seldom asked for twice, and thousands of them are much to hold.
        find = remembered if len(place) <= _LONG_PLACE else look_up
        return find(method, scheme, host, port, place, client)

    told = [(r.match.text, r.json, r.header, r.query, r.form, r.regex) for r in ignore]
    places = sorted(fields.secret), sorted(fields.kept)
    known = f" {clients.told!r}" if profiles else ""
    digest = blake2b(
        f"{CANONICAL_VERSION} {told!r} {places!r}{known}".encode("utf-8", "surrogatepass"),
        digest_size=16,
    )
    return Rules(
        ignore,
        digest.digest(),
        endpoint,
        any("?" in rule.match.path for rule in ignore) or clients.by_target,
        (*made.values(), *clients.patterns),
        fields,
        clients,
    )


def rules_of(config: Config, clock: patterns.Clock | None = None) -> Rules:
    """Give the rules of a configuration. Raises: ValueError, as `compile_rules`."""
    profiles = find_profiles(config.profiles_off, config.profiles)
    return compile_rules(config.ignore, clock, find_field_rules(config), profiles)


def find_field_rules(config: Config) -> FieldRules:
    """Give what each header field is under what a configuration redacts."""
    return replace(
        SHIPPED_FIELDS,
        secret=frozenset(rule.header.lower().encode() for rule in config.redact if rule.header),
        kept=frozenset(rule.header.lower().encode() for rule in config.redact_off if rule.header),
    )


def fields_of(request: Request, rules: Rules) -> CountedFields:
    """Read a request's header fields as they are compared."""
    masked = rules.of(request).masks.header
    return count_fields(
        request.headers, rules.fields, masked, method=request.method, path=request.path
    )


def counts_secrets_of(request: Request, name: str, rules: Rules) -> bool:
    """Say whether secrets in a header field are compared; name: lower-case."""
    counted, field = fields_of(compared(request), rules).counted, name.encode("latin-1")
    return is_marked(counted, field) or (
        field in rules.fields.secret and (field, LINKED) in counted
    )


def canonical(
    request: Request,
    request_class: RequestClass,
    rules: Rules,
    redacted_query: frozenset[str] = _NONE,
) -> Canonical:
    """Give what counts of a request.

    request: as stored, so secrets are placeholders already.
    redacted_query: lower-case names whose values count by their kind alone, or one of their values (`nth_value`).
    """
    request = compared(request)
    blocks = find_block_names(request)
    if blocks is not None:
        request = without_block_names(request)
    endpoint = rules.of(request, request_class)
    authority, path, masks = endpoint
    scheme, names = request.scheme.lower(), names_of(request)
    keyless = None
    if request_class is RequestClass.TELEMETRY:
        bare = BodyKind.NONE
        return Canonical(request.method, scheme, authority, path, (), (), bare, b"", names)
    text = request.target.partition("?")[2]
    query = tuple(sorted(_query(text, masks, redacted_query), key=_name)) if text else ()
    fields = count_fields(
        request.headers, rules.fields, masks.header, method=request.method, path=request.path
    )
    if request.spilled is not None:
        # Too large to be parsed: its bytes count, but for the boundary of a multipart body.
        kind, body, coded = BodyKind.BYTES, SPILLED + request.spilled.match, True
    else:
        head = _head(request.headers)
        content = find_content_type(head, request.body)
        kind, body, coded = _body(request.body, content, head, masks, fields.linked)
        if request_class is RequestClass.EFFECT and kind in (BodyKind.JSON, BodyKind.FORM):
            keyless = _without_keys(request.body, content, head, masks, fields.linked)
            keyless = keyless if keyless != (kind, body) else None
    # Servers take the first of several types, or the last: they count as they are, with their boundaries.
    alone = sum(name == b"content-type" for name, _ in fields.counted) == 1
    headers = tuple(
        (
            name,
            parse_content_type(value).form
            if alone and name == b"content-type" and value != MASKED
            else mask_field(value.strip(), name, masks.fields),
        )
        for name, value in fields.counted
        if (coded or name != b"content-encoding" or value == MASKED)
        and not (masks.unconditional and name in NEW_CONDITIONS)
    )
    if request.trailers:
        headers += _count_trailers(request, rules.fields, masks.header)
    told = (blocks.sent, *blocks.listed) if blocks is not None else ()
    return Canonical(
        request.method, scheme, authority, path, query, headers, kind, body, names, told, keyless
    )


def _without_linked(body: bytes, linked: Sequence[Linked]) -> bytes:
    """Give a body with a mark in the place of the ids of the run that stand in its head, too."""
    for one in linked:
        if one.space is Space.RUN and len(one.value) >= _LINKED_BYTES and one.value in body:
            body = body.replace(one.value, _LINKED)
    return body


def fingerprint(form: Canonical) -> Fingerprint:
    """Give the 16 bytes that stand for a canonical form: BLAKE3 over its parts, each with its length."""
    return _fingerprint(form, form.headers)


def _fingerprint(form: Canonical, headers: Headers) -> Fingerprint:
    parts = [form.method, form.scheme, form.authority, form.path, str(len(form.query)), *form.query]
    if form.names:
        parts += [f"{MARKER}names", *form.names]
    told = [part.encode("utf-8", "surrogatepass") for part in parts]
    for name, value in headers:
        told += (name, value)
    told.append(form.kind.encode())
    start = b"playhead canonical %d\n%d\n" % (CANONICAL_VERSION, len(told))
    digest = blake3(start + b"".join([b"%d:%b" % (len(part), part) for part in told]))
    digest.update(form.body)
    return Fingerprint(digest.digest(16))


def effect_key(form: Canonical) -> bytes:
    """Give the 32 bytes under which an effect is the same again: 16 for method, URL and body, and 16 for the body alone.

    Header fields do not count, nor do idempotency keys in a query or body. The path counts in normal form, so that another
    spelling of an effect is that effect.
    """
    query = tuple(pair for pair in form.query if not is_key_of_effect(unquote_plus(_name(pair))))
    path = without_trailing(normal_path(form.path))
    kind, body = (form.kind, form.body) if form.keyless is None else form.keyless
    bare = form._replace(path=path, query=(*query, *form.blocks), kind=kind, body=body)
    return _fingerprint(bare, ()) + blake3(kind.encode() + b"\n" + body).digest(16)


def raw_key(request: Request, request_class: RequestClass) -> bytes:
    """Give 16 bytes over all that `canonical` reads of a request, before any parsing.

    Equal keys have equal fingerprints under the same rules and names of redacted query keys, unless `redact_off` has a
    credential count by its value.
    """
    request = compared(request)
    told = [
        request_class.encode(),
        find_product(request.headers),
        request.method.encode("utf-8", "surrogatepass"),
        request.scheme.encode("utf-8", "surrogatepass"),
        request.host.encode("utf-8", "surrogatepass"),
        b"%d" % request.port,
        request.target.encode("utf-8", "surrogatepass"),
        *(name.encode("utf-8", "surrogatepass") for name in names_of(request)),
    ]
    fields = count_fields(request.headers, SHIPPED_FIELDS, method=request.method, path=request.path)
    for name, value in (*fields.counted, *_count_trailers(request, SHIPPED_FIELDS)):
        told += (name, value)
    start = b"playhead raw %d\n%d\n" % (CANONICAL_VERSION, len(told))
    digest = blake3(start + b"".join([b"%d:%b" % (len(part), part) for part in told]))
    digest.update(_body_told(request))
    return digest.digest(16)


def same_bytes(one: Request, other: Request) -> bool:
    """Say whether two requests are the same in all but noise: method, target, body and every other header field."""
    one, other = compared(one), compared(other)
    return _body_told(one) == _body_told(other) and same_head(one, other)


def same_head(one: Request, other: Request) -> bool:
    """Say whether two requests are the same in all but noise and their bodies."""
    return (
        (one.method, one.scheme, one.host, one.port, one.target)
        == (other.method, other.scheme, other.host, other.port, other.target)
        and _raw_head(one.headers) == _raw_head(other.headers)
        and _raw_head(one.trailers) == _raw_head(other.trailers)
        and names_of(one) == names_of(other)
    )


def _body_told(request: Request) -> bytes:
    return request.body if request.spilled is None else SPILLED + request.spilled.match


def compared(request: Request) -> Request:
    """Give a request with kinds in the place of its placeholders; most have none, and are given back."""
    headers = mark_fields(mark_header_places(request.headers, request.secrets))
    if headers != request.headers:
        request = replace(request, headers=headers)
    if not request.secrets:
        return request
    content = find_content_type(_head(request.headers), request.body)
    return mark_request(request, json=content is not None and content.kind is BodyKind.JSON)


def find_content_type(head: Headers, body: bytes) -> ContentType | None:
    """Find what a body is; without a `content-type` only what looks like JSON is something."""
    for name, value in head:
        if name == b"content-type":
            return parse_content_type(value)
    return _BARE_JSON if body[:1] in (b"{", b"[") else None


def open_body(request: HttpRequest) -> tuple[bytes, ContentType | None]:
    """Give a request's body with its codings undone where they can be, and what it is."""
    head = _head(request.headers)
    plain, _ = _plain(request.body, head)
    return plain, find_content_type(head, request.body)


def query_pairs(
    target: str, masks: Masks, redacted_query: frozenset[str] = _NONE
) -> list[tuple[str, str | None]]:
    """Give the pairs of a target's query in their order, as they are compared; None without a `=`."""
    text = target.partition("?")[2]
    pairs = [part.partition("=") for part in _query(text, masks, redacted_query)] if text else []
    return [(name, value if eq else None) for name, eq, value in pairs]


def form_pairs(body: bytes, masks: Masks) -> list[tuple[str, str | None]]:
    """Give the pairs of a form in their order, as they are compared; None without a `=`."""
    pairs = [part.partition("=") for part in _form(body, masks)]
    return [(name, value if eq else None) for name, eq, value in pairs]


def without_boundary(body: bytes, boundary: bytes) -> bytes | None:
    """Put a constant in the place of a multipart body's boundary; None where that is not safe.

    Only delimiter lines change: what reads like the boundary inside a part is content.
    """
    return replace_delimiters(body, boundary, BOUNDARY) if boundary else None


@lru_cache(maxsize=512)
def parse_content_type(value: bytes) -> ContentType:
    """Parse a `content-type` value: how it is compared, and what it makes of a body."""
    media, *rest = _split_parameters(value)
    media = media.strip().lower()
    kind, boundary, parameters = _kind(media), b"", []
    written = _PARAMETER_BOUNDARY.findall(value)
    for part in rest:
        name, _, text = part.partition(b"=")
        name, raw = name.strip().lower(), text.strip()
        text = _unquote(raw)
        # One that another reader may read in another way, or a second one, counts.
        if name == b"boundary" and len(written) == 1 and is_plain_boundary(raw):
            boundary = text
        elif name == b"charset":
            text = _CHARSETS.get(text.lower(), text.lower())
            # JSON is UTF-8 whether it says so or not: RFC 8259 section 8.1.
            if not (kind is BodyKind.JSON and text == b"utf-8"):
                parameters.append(b"charset=" + text)
        elif name:
            parameters.append(name + b"=" + _quote(text))
    return ContentType(b";".join([media, *sorted(parameters)]), kind, boundary)


_CHARSETS = {b"utf8": b"utf-8", b"latin1": b"iso-8859-1", b"ascii": b"us-ascii"}
_BARE_JSON = ContentType(b"", BodyKind.JSON, b"")


def _kind(media: bytes) -> BodyKind:
    if media in (b"application/json", b"text/json") or media.endswith(b"+json"):
        return BodyKind.JSON
    if media.startswith(b"application/x-amz-json-"):
        return BodyKind.JSON
    if media == b"application/x-www-form-urlencoded":
        return BodyKind.FORM
    return BodyKind.MULTIPART if media.startswith(b"multipart/") else BodyKind.BYTES


def _split_parameters(value: bytes) -> list[bytes]:
    return _PARAMETERS.findall(value) if b'"' in value else value.split(b";")


_PARAMETER_BOUNDARY = re.compile(rb"boundary[ \t]*=", re.IGNORECASE)
_PARAMETERS = re.compile(rb'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)


def _unquote(text: bytes) -> bytes:
    if len(text) < 2 or text[:1] != b'"' or text[-1:] != b'"':
        return text
    return re.sub(rb"\\(.)", rb"\1", text[1:-1], flags=re.DOTALL)


def _name(pair: str) -> str:
    return pair.partition("=")[0]


def _quote(text: bytes) -> bytes:
    """Write a parameter so that it ends where it did: `p="a;q=b"` is one."""
    if b";" not in text and b'"' not in text:
        return text
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _count_trailers(
    request: Request, rules: FieldRules, masked: frozenset[bytes] = frozenset()
) -> Headers:
    """Give the trailers that count, under names that no header field has."""
    if not request.trailers:
        return ()
    counted = count_fields(request.trailers, rules, masked).counted
    return tuple((TRAILER + name, value) for name, value in counted)


def _raw_head(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Give the header fields that are not noise, as they were sent, with lower-case names in their order."""
    places = places_without_noise(tuple([name for name, _ in headers]))
    return [(name, headers[at][1]) for name, at in places]


def _head(headers: Headers) -> Headers:
    """Give the header fields that say what a body is, with lower-case names."""
    return tuple(
        (lower, value)
        for name, value in headers
        if len(name) in _READ_LENGTHS and (lower := name.lower()) in _CONTENT
    )


def _plain(body: bytes, head: Headers) -> tuple[bytes, bool]:
    """Undo a body's codings; True where they could not be undone."""
    codings = [value for name, value in head if name == b"content-encoding"]
    if not codings:
        return body, False
    plain = undo_coding(body, b",".join(codings))
    return (body, True) if plain is None else (plain, False)


def _body(
    raw: bytes,
    content: ContentType | None,
    head: Headers,
    masks: Masks,
    linked: Sequence[Linked] = (),
    *,
    keyless: bool = False,
) -> tuple[BodyKind, bytes, bool]:
    body, coded = _plain(raw, head)
    body = _without_linked(body, linked)
    if not body:
        return BodyKind.NONE, b"", coded
    if coded and any(
        name == b"content-encoding" and b"aws-chunked" in value for name, value in head
    ):
        return BodyKind.BYTES, without_signatures(body), coded
    if content is None or coded:
        return BodyKind.BYTES, body, coded
    kind = content.kind
    if kind is BodyKind.MULTIPART:
        # Not bounded: uploads have random boundaries at any size, and this is one pass over memory.
        bare = without_boundary(body, content.boundary)
        if bare is None:
            return *_bytes(body, masks), False
        if len(bare) <= MAX_PARSED:
            bare = without_inner(bare, BOUNDARY, _boundary_of)
        return kind, _multipart(bare, masks), False
    if len(body) > MAX_PARSED:
        return BodyKind.BYTES, body, False
    if kind is BodyKind.JSON:
        try:
            reading = _reading_of(masks)
            if keyless:
                reading = _keyless(reading)
            return kind, canonical_json(body, masks.json, reading), False
        except (ValueError, RecursionError):
            return *_bytes(body, masks), False
    if kind is BodyKind.FORM:
        if body.count(b"&") > MAX_PAIRS:
            return *_bytes(body, masks), False
        pairs = _form(body, masks)
        if keyless:
            pairs = [one for one in pairs if not is_key_of_effect(unquote_plus(_name(one)))]
        return kind, "&".join(pairs).encode(), False
    return *_bytes(body, masks), False


def _without_keys(
    raw: bytes,
    content: ContentType | None,
    head: Headers,
    masks: Masks,
    linked: Sequence[Linked],
) -> tuple[BodyKind, bytes] | None:
    """Give a body without its idempotency keys; None where it has none."""
    plain, _ = _plain(raw, head)
    if not may_have_key(plain):
        return None
    kind, body, _ = _body(raw, content, head, masks, linked, keyless=True)
    return (kind, body) if body else (BodyKind.NONE, b"")


def _boundary_of(value: bytes) -> tuple[bytes, bytes]:
    # Not remembered: boundaries are drawn anew each time.
    content = parse_content_type.__wrapped__(value)
    return content.form.partition(b";")[0], content.boundary


def _bytes(body: bytes, masks: Masks) -> tuple[BodyKind, bytes]:
    if not masks.regex or len(body) > MAX_PARSED:
        return BodyKind.BYTES, body
    return BodyKind.TEXT, patterns.mask_bytes(body, masks.regex)


def _multipart(bare: bytes, masks: Masks) -> bytes:
    if not masks.regex or len(bare) > MAX_PARSED:
        return bare
    # Between boundaries, so that no pattern takes one for content.
    parts = bare.split(BOUNDARY)
    deadline = patterns.until(masks.regex)
    return BOUNDARY.join(patterns.mask_bytes(part, masks.regex, deadline) for part in parts)


def _reading(tree: Any, exact: bool) -> Reduced:
    """Say what does not count in a JSON body beside its masks."""
    return Reduced(volatile_places(tree, exact), graphql.find_swaps(tree, exact))


def _reading_of(masks: Masks) -> Reading:
    if not masks.regex and not masks.placed:
        return _reading

    def reading(tree: Any, exact: bool) -> Reduced:
        places, swaps = _reading(tree, exact)
        found = patterns.find_swaps(tree, exact, masks.regex, swaps, masks.placed)
        return Reduced(places, found)

    return reading


def _keyless(reading: Reading) -> Reading:
    """Leave the idempotency keys of a JSON body's first level out, too."""

    def keyless(tree: Any, exact: bool) -> Reduced:
        places, swaps = reading(tree, exact)
        if not isinstance(tree, dict):
            return Reduced(places, swaps)
        gone = [name for name in tree if is_key_of_effect(name)]
        kept = [one for one in swaps if one.holder is not tree or one.key not in gone]
        return Reduced(places, (*kept, *(Swap(tree, name, None) for name in gone)))

    return keyless


def message_form(data: bytes, masks: Masks) -> bytes:
    """Give the form under which the text of a WebSocket's message is compared with another.

    More counts in it than in a body: what is JSON-RPC or GraphQL counts as it is. What is no JSON is a text.
    """
    try:
        if not masks.regex and not masks.placed:
            return canonical_json(data, masks.json)
        return canonical_json(data, masks.json, _message_reading(masks))
    except (ValueError, RecursionError):
        return MARKER.encode() + _bytes(data, masks)[1]


def _message_reading(masks: Masks) -> Reading:
    def reading(tree: Any, exact: bool) -> Reduced:
        return Reduced((), patterns.find_swaps(tree, exact, masks.regex, (), masks.placed))

    return reading


def body_tree(
    request: Request, rules: Rules, request_class: RequestClass = RequestClass.READ
) -> object:
    """Give a request's JSON body as it is compared, for people to be shown.

    Raises: ValueError where it is no JSON, RecursionError where it is nested too deep.
    """
    masks = rules.of(request, request_class).masks
    return json_tree(counted_body(request, rules).decode(), masks.json, _reading_of(masks))


def counted_body(request: Request, rules: Rules) -> bytes:
    """Give a request's body with its codings undone where they can be, and without the ids of the run in its head."""
    return _without_linked(open_body(request)[0], fields_of(request, rules).linked)


def _form(body: bytes, masks: Masks) -> list[str]:
    parts, masked = [], masks.form
    deadline = patterns.until(masks.regex)
    for part in body.decode("latin-1").split("&"):
        name, eq, value = part.partition("=")
        # As Latin-1, so that bytes which are no UTF-8 stay what they are.
        name = unquote_plus(name, "latin-1")
        value = unquote_plus(value, "latin-1")
        if masked and name.encode("latin-1").decode("utf-8", "replace") in masked:
            parts.append(f"{quote_plus(name, encoding='latin-1')}={MARKER}*")
        elif "%" in part and _BROKEN.search(part):
            # What is written below has no broken encoding, so this is none of it.
            parts.append(patterns.mask_text(part, masks.regex, deadline))
        elif masks.regex:
            told = patterns.what_is_left(
                value.encode("latin-1").decode("utf-8", "surrogateescape"), masks.regex, deadline
            )
            left = [quote_plus(piece, errors="surrogateescape") for piece in told]
            parts.append(quote_plus(name, encoding="latin-1") + eq + patterns.MASK.join(left))
        else:
            parts.append(
                quote_plus(name, encoding="latin-1") + eq + quote_plus(value, encoding="latin-1")
            )
    return parts


def _query(text: str, masks: Masks, redacted: frozenset[str]) -> list[str]:
    parts, masked = normal_encodings(text).split("&"), masks.query
    if not masked and not redacted and not masks.regex:
        return parts
    deadline = patterns.until(masks.regex)
    nth: dict[str, int] = {}
    for index, part in enumerate(parts):
        name, eq, value = part.partition("=")
        plain = unquote_plus(name) if "%" in name or "+" in name else name
        lower = plain.lower()
        nth[lower] = nth.get(lower, 0) + 1
        if plain in masked:
            parts[index] = f"{name}{eq}{MARKER}*"
        elif lower in redacted or (redacted and nth_value(lower, nth[lower]) in redacted):
            told = "empty" if is_empty(value.encode("utf-8", "replace")) else query_kind(plain)
            parts[index] = f"{name}{eq}{MARKER}{told}"
        elif masks.regex and value:
            told = unquote_plus(value, errors="surrogateescape")
            left = patterns.what_is_left(told, masks.regex, deadline)
            if len(left) > 1:
                quoted = [quote_plus(piece, errors="surrogateescape") for piece in left]
                parts[index] = f"{name}={patterns.MASK.join(quoted)}"
    return parts


_TRIPLET = re.compile(r"%([0-9A-Fa-f]{2})")
_BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})")
"""A sign that begins no encoding. Some servers leave it as it is, some drop it, and some refuse it."""


def normal_encodings(text: str) -> str:
    """Write percent-encodings one way, and change no meaning: RFC 3986 section 6.2.2.

    Only what never needed encoding is decoded, so `%2B` (a plus) stays apart from `+` (a space to many).
    """
    if MARKER in text:
        text = text.replace(MARKER, "%00")
    return _TRIPLET.sub(_triplet, text) if "%" in text else text


def _triplet(found: re.Match[str]) -> str:
    code = unquote_to_bytes(found[0])[0]
    # The digit of `%2%35` would complete the broken encoding before it.
    completes = "%" in found.string[max(0, found.start() - 2) : found.start()]
    return found[0].upper() if completes or code not in UNRESERVED else chr(code)
