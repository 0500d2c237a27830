"""Where credentials are found: header fields, query parameters, fields of JSON and forms, and the kind of each.

Tables and small questions about names and values; nothing is replaced here.

Source: RFC 9110 section 11 (credentials), RFC 6265 section 4 (cookies), RFC 6749 and 7523 (OAuth), the AWS and
Google pages on signing URLs, and the names that the providers' own pages give.
"""

import re
from urllib.parse import unquote

from .harmless import is_paging
from .looks_like_secret import is_shaped

AUTHORIZATION = "authorization"
COOKIE = "cookie"
KEY = "key"
TOKEN = "token"
SIGNATURE = "signature"
CONFIGURED = "configured"
SECRET = "secret"
"""What was found by its look, or because it stood in a declared place before."""

HEADERS: dict[str, str] = {
    **dict.fromkeys(
        (
            "authorization",
            "proxy-authorization",
            "x-authorization",
            "authentication",
            "x-auth",
            "helicone-auth",
        ),
        AUTHORIZATION,
    ),
    **dict.fromkeys(("x-forwarded-authorization", "x-serverless-authorization"), AUTHORIZATION),
    "x-ms-copy-source-authorization": AUTHORIZATION,
    "x-wsse": AUTHORIZATION,
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
            "fastly-key",
            "x-mashape-key",
            "x-key",
            "dd-api-key",
            "dd-application-key",
            "ocp-apim-subscription-key",
            "ocp-apim-subscription-key-secondary",
            "aeg-sas-key",
            "x-honeycomb-team",
            "x-langfuse-secret-key",
            "cf-access-client-secret",
            "x-goog-encryption-key",
            "x-goog-encryption-key-sha256",
            "x-amz-server-side-encryption-customer-key",
            "x-amz-server-side-encryption-customer-key-md5",
            "x-amz-copy-source-server-side-encryption-customer-key",
            "x-amz-copy-source-server-side-encryption-customer-key-md5",
            "x-ms-encryption-key",
            "x-ms-encryption-key-sha256",
            "x-sentry-auth",
            "x-appwrite-key",
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
            "x-appwrite-jwt",
            "x-appwrite-session",
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
        (
            *("aeg-sas-token", "x-hub-signature", "x-hub-signature-256", "x-slack-signature"),
            *("api-sign", "cb-access-sign", "kc-api-sign", "ok-access-sign", "x-bapi-sign"),
        ),
        SIGNATURE,
    ),
    "stripe-signature": SIGNATURE,
}
"""Header fields whose value is a secret, lower case, and what kind."""


def _plain_header(name: str) -> str:
    """Give a name without its signs, and without the `x-` that one product writes and another does not."""
    return name.removeprefix("x-").replace("-", "")


_LEAST_PLAIN = 7
_PLAIN_HEADERS = {
    plain: kind
    for name, kind in HEADERS.items()
    if len(plain := _plain_header(name)) >= _LEAST_PLAIN
}

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

AMBIGUOUS = frozenset(("key", "token", "secret", "sig", "signature", "hmac", "auth"))
"""Query keys that are names of other things too, as of the key of an object: their values count by what they look like."""

LIKE_A_SECRET = re.compile(
    r"(?:^|[-_])(?:api-?(?:key|token)|token|jwt|secret|password|credentials?|authorization)$",
    re.ASCII,
)
"""How further request headers that hold a secret end."""
CREDENTIAL = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_.~+/=-]{16,}", re.ASCII)
GOOGLE = re.compile(r"(?:^|\.)(?:googleapis|google)\.com$", re.IGNORECASE)

SCHEMES = frozenset(
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
WITH_PARAMETERS = frozenset(
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
SHARED_KEYS = frozenset(("sharedkey", "sharedkeylite", "aws"))
"""Of these, the ones whose credentials are an account and a signature."""
OPEN_PARAMETERS = frozenset(
    (
        b"signedheaders",
        b"realm",
        b"algorithm",
        b"qop",
        b"uri",
        b"oauth_signature_method",
        b"oauth_version",
        b"oauth_callback",
    )
)
"""Parameters of these that are no secret, and say what is asked of whom."""

_WHITE = re.compile(rb"\s")
_AWS_ID = re.compile(rb"A(?:KIA|SIA|IDA|ROA)[A-Z2-7]{16}")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_WORD = re.compile(rb"[a-z]+|[A-Z][a-z]*|[A-Z]+")
_PLACEHOLDING = re.compile(
    rb"(?:[*x.-]|\xe2\x80\xa2)+|[<{$%].*[>})%]?|\[.*\]|null|none|true|false|undefined|string",
    re.I | re.S,
)
"""What people and schemas write in the place of a secret."""

MIN_FOUND = 8
"""Bytes a value must have to be looked for outside its place."""
_MIN_TOKEN = 16
_MIN_GIVEN = 6
_LONG_WORD = 12
_MAX_VALUE = 16 * 1024


_NO_SECRETS = frozenset(("lock-token", "x-ms-session-token", "x-ms-documentdb-session-token"))
"""Headers that end so and hold none: a lock of WebDAV, how far a client of Cosmos DB has read."""


def find_header(name: str) -> str | None:
    """Find what kind of secret a field holds that the table names, with or without `x-` and signs in it.

    name: in lower case.
    """
    if name in _NO_SECRETS:
        return None
    return HEADERS.get(name) or _PLAIN_HEADERS.get(_plain_header(name))


def nth_value(name: str, number: int) -> str:
    """Name the nth value of a query key that has values of several sorts; from 1, in the order of the query."""
    return f"{name}&{number}"


def query_kind(name: str) -> str:
    """Give the kind of secret a query key holds; `configured` where the shipped table does not know it."""
    return QUERY.get(name.lower(), CONFIGURED)


def kind_of_header(name: str) -> str | None:
    """Find what kind of secret a field of a request holds for its lower-case name; None: it holds none."""
    found = find_header(name)
    if (
        found is not None
        or name in _NO_SECRETS
        or not LIKE_A_SECRET.search(name)
        or is_paging(name.split("-"))
    ):
        return found
    if name.endswith("authorization"):
        return AUTHORIZATION
    return KEY if name.endswith("key") else TOKEN


def is_query_secret(name: str, value: str) -> bool:
    """Say whether the value of a declared query key is a secret; the same of a value and of its placeholder.

    name: in lower case.
    """
    return name not in AMBIGUOUS or is_shaped(unquote(value).encode("utf-8", "surrogatepass"))


def is_credential(value: bytes, least: int = _MIN_TOKEN) -> bool:
    """Say whether a value reads like a credential: long enough, one word, letters and digits."""
    return (
        least <= len(value) <= _MAX_VALUE
        and not _WHITE.search(value)
        and bool(_DIGIT.search(value) and _LETTER.search(value))
    )


def is_account(value: bytes) -> bool:
    """Say whether a value in a place of credentials is somebody's, and no word for all, as `dummy` is.

    An access key id of AWS is in base32: one in twenty-eight has no digit. Source: AWS's IAM identifiers.
    """
    return is_credential(value) or _AWS_ID.fullmatch(value) is not None


def is_findable(value: bytes, least: int = MIN_FOUND) -> bool:
    """Say whether a secret is so much its own that it can be looked for anywhere."""
    return is_credential(value, least) or (
        len(value) >= 2 * least and is_one(value) and not _WORD.fullmatch(value)
    )


def is_given_findable(value: bytes) -> bool:
    """Say whether what is a secret for certain can be looked for anywhere: short words are in too many texts."""
    return (
        len(value) >= _MIN_GIVEN
        and is_one(value)
        and (len(value) >= _LONG_WORD or not _WORD.fullmatch(value))
    )


def is_one(value: bytes) -> bool:
    """Say whether a value in a declared place may be a secret at all."""
    return bool(value) and len(value) <= _MAX_VALUE and not _PLACEHOLDING.fullmatch(value)
