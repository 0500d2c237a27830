"""Request fields whose meaning is known, and is not where a request goes or what it asks for.

A live rule lets a request out with any value of these. The value of any other field may be an address for the server, whose reading
has to fit the rule (`canonical/address_fields.py`). Names that are known to carry an address (`Forwarded`, `X-Original-URL` ...) are read
by `canonical/target_overrides.py` whatever is listed here.

Source: IANA's registry of HTTP field names; what the clients of the journeys send; the documents of the vendors named.
"""

import re

from .shipped_lists import DECISIVE_NAMES, DIGESTS, KEYS_OF_EFFECTS, NOISE, NOISE_FAMILIES, REPORTED

_REGISTERED = """
    a-im accept accept-charset accept-datetime accept-encoding accept-language accept-patch accept-post accept-query accept-ranges
    accept-signature access-control-request-headers access-control-request-method age allow alpn authorization
    available-dictionary cache-control capsule-protocol client-cert client-cert-chain connection content-digest
    content-disposition content-encoding content-id content-language content-length content-location content-md5 content-range
    content-transfer-encoding content-type cookie cookie2 date dav depth dictionary-id digest dpop early-data etag expect
    expires from if if-match if-modified-since if-none-match if-range if-schedule-tag-match if-unmodified-since im keep-alive
    last-modified link lock-token max-forwards mime-version odata-entityid odata-isolation odata-maxversion odata-version origin
    overwrite pragma prefer priority proxy-authorization range referer repeatability-client-id repeatability-first-sent
    repeatability-request-id repr-digest save-data schedule-reply sec-gpc sec-purpose sec-websocket-extensions sec-websocket-key
    sec-websocket-protocol sec-websocket-version signature signature-input slug soapaction te traceparent tracestate
    trailer transfer-encoding ttl upgrade upgrade-insecure-requests urgency user-agent via want-content-digest want-repr-digest warning
"""
_SAY_WHO_ASKS = """
    cf-connecting-ip cf-connecting-ipv6 fastly-client-ip http-referer true-client-ip x-azure-clientip x-azure-socketip x-client-ip
    x-cluster-client-ip x-envoy-external-address x-forwarded-for x-real-ip x-requested-with
"""
_OF_CLIENTS = """
    baggage
    ce-dataschema ce-source ce-subject ce-type
    npm-scope pacote-integrity pacote-pkg-id pacote-req-type pacote-version
    x-clickhouse-format x-registry-auth x-sentry-auth
"""
"""Sentry and OpenTelemetry; CloudEvents; npm; ClickHouse; Docker."""
KNOWN_FIELDS = frozenset(
    (
        *(f"{_REGISTERED} {_SAY_WHO_ASKS} {_OF_CLIENTS}".encode().split()),
        *NOISE,
        *DECISIVE_NAMES,
        *KEYS_OF_EFFECTS,
        *DIGESTS,
        *(row.name for row in REPORTED),
    )
)
"""In lower case."""
KNOWN_FAMILIES = (
    *NOISE_FAMILIES,
    # A vendor's own fields, which only its own services read.
    *(b"x-amz-", b"x-amzn-", b"x-ms-", b"x-goog-", b"x-fern-", b"x-langfuse-", b"x-codex-"),
    *(b"anthropic-", b"openai-", b"stripe-", b"x-stripe-", b"grpc-", b"sec-ch-", b"sec-fetch-"),
)
"""Beginnings of names, in lower case."""
_CREDENTIAL = re.compile(
    rb"(?:^|[-_])(?:(?:api|access|auth|subscription|account|consumer|client|private|secret|license|master|functions|idempotency|encryption"
    rb"|signing)[-_]?key|token|secret|password|signature|sig|hmac|digest|checksum|hash|md5|sha\d{1,3}|nonce|mac)$"
)


def is_known(name: bytes) -> bool:
    """Say whether a field of this lower-case name says nothing of where a request goes, whatever its value."""
    return name in KNOWN_FIELDS or name.startswith(KNOWN_FAMILIES)


def is_random_by_name(name: bytes) -> bool:
    """Say whether the value of a field with this lower-case name is a credential or a digest: any characters, in any order."""
    return _CREDENTIAL.search(name) is not None
