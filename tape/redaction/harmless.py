"""Tell names that end as those of secrets do, and name none: `next_page_token`, `primary_key`.

Only the whole word directly before the last one says so. `page_token` is where the next page begins, `page_access_token` is a secret; so
are `admin_password` and `account_token`, whose letters contain `min` and `count`. A password, a secret, and an API, access, secret or
private key have no harmless kind.

Source: the cases of tests/adversary/secrets_benign.yaml, and the pages of those who use these names.
"""

import re
from collections.abc import Sequence

PAGING = frozenset(
    (
        *("page", "next", "prev", "previous", "continuation", "continue", "cursor", "sync", "skip"),
        *("starting", "resume", "position", "marker", "pagination", "delta"),
        *("forward", "backward", "offset", "since"),
    )
)
"""Before `token`: where a list, a stream or a transfer goes on. In the names of header fields, too."""
TOKENS = (
    PAGING
    | frozenset(
        (
            *("card", "payment", "device"),  # what is charged, who is told
            *("update", "change", "lock"),  # a version that the next request names
            "opaquelock",  # the scheme of WebDAV's URLs of locks (RFC 4918): the next `If` has the URL in another syntax
            *(
                "client",
                "clientrequest",
                "idempotency",
                "idempotent",
            ),  # a request that is sent again
            "lifecycleaction",  # what an answer of AWS is for
            *(
                "eos",
                "bos",
                "pad",
                "unk",
                "sep",
                "cls",
                "mask",
                "special",
            ),  # pieces of a model's text
        )
    )
)
"""Before `token`, in the names of fields."""
KEYS = frozenset(
    (
        *("idempotency", "idempotent", "cache", "websocket"),  # a request, an answer, a handshake
        *("public", "publishable"),
        *("primary", "foreign", "partition", "sort", "hash", "range", "row"),  # of a table
        *("object", "storage", "content", "index", "lookup", "upload", "resume", "lock", "device"),
        *("position", "version", "change", "update", "request", "page", "next"),
        *("cursor", "start", "evaluated"),  # where a list goes on
        *("encrypted", "client", "output", "action", "monkey"),
        *(
            "file",
            "etag",
            "dedupe",
            "dedup",
            "deduplication",
            "condition",
            "translation",
        ),  # what is named, told apart
        *(
            "host",
            "verify",
            "verification",
            "site",
        ),  # public ones: of a server, of a signature, of a page
    )
)
"""Before `key`, in the names of fields."""
COUNTS = frozenset(("ratelimit", "limit", "remaining", "max", "min", "num", "total"))
"""Somewhere before `tokens`: how many of them a model reads or writes."""
_PASSES = (
    *("compass", "bypass", "surpass", "trespass", "overpass", "underpass"),
    *("bpsk", "dpsk", "qpsk"),  # modulations
)
"""Words that end as the name of a password does."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_JOINED = {
    last: re.compile(f"(?:{'|'.join(sorted(words, key=len, reverse=True))})*{last}")
    for last, words in (("token", TOKENS), ("key", KEYS))
}
"""Names without a sign between their words, of which all are harmless: `nextpagetoken`."""


_DOUBTFUL = re.compile(
    r"(?:client_token|(?:client|storage|primary)[_-]?key)(?:[_-]?(?:base64|b64|value))?\Z"
)
"""Names of a secret in some products and of something harmless in others: the token of a client of Vault, the key of an account of
storage. `ClientToken` and `client-token` are the name of a request of AWS, `storage_key` is often the path of an object, a `client_key` what a page may know, a `primary_key` a column of a table."""


def is_doubtful(name: str) -> bool:
    """Say whether the value decides what a name that mostly is harmless names.

    name: in small letters, as it is written else.
    """
    return _DOUBTFUL.search(name) is not None


def is_paging(words: Sequence[str]) -> bool:
    """Say whether a name, by its words in small letters, is that of a token of pages."""
    return len(words) > 1 and words[-1] == "token" and words[-2] in PAGING


def is_harmless(name: str, plain: str) -> bool:
    """Say whether a name names no secret, for all that it ends so.

    name: as it is written; plain: in small letters without signs, and without an ending that counts.
    """
    if plain.endswith(_PASSES):
        return True
    if plain.endswith("token"):
        last, known = "token", TOKENS
    elif plain.endswith("key"):
        last, known = "key", KEYS
    else:
        return plain == "nextauth"  # the name of a package
    if plain == last:
        return False
    words = [word.lower() for word in _PART.findall(name)]
    if words[-1] == "tokens" and not COUNTS.isdisjoint(words):
        return True
    for at in range(len(words) - 1, 0, -1):
        if words[at].startswith(last):
            if words[at - 1] == "storage" and "azure" in words:
                return False  # of an account, in the variable of the az CLI
            return words[at - 1] in known or "".join(words[max(0, at - 2) : at]) in known
    return _JOINED[last].fullmatch(plain) is not None
