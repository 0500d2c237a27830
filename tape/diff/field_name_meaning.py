"""Read the name of the place at which two requests differ: whether it tells requests apart or says when they were made, or names a party or a quantity.

Values alone do not tell: 1, 2, 3 may number requests or be what is bought, and `acct_1A2b3C4d5E` may be drawn or be
who is paid. So a place that is not called as what a client makes anew is content: a bare `id`, a `ref`, the `*_id` of a thing.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

_STEP = re.compile(r"[^.\[\]'\"*]+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

_REQUESTS = frozenset(
    (
        *("requestid", "requestuuid", "reqid", "requestno", "requestnumber", "requestindex"),
        *("requestseq", "requestcounter", "requestnonce", "requesttoken"),
        *("correlationid", "traceid", "spanid", "parentspanid", "traceparent", "invocationid"),
        *("idempotencykey", "idempotencytoken", "dedupid", "deduplicationid", "token", "nonce"),
        *("rpcid", "sessionid", "sessionuuid", "sessionaffinity", "turnid", "promptid"),
    )
)
"""Tell one request or process from another, whatever it is about. An `event_id` or `message_id` may be what is cancelled or deleted."""
_SEQUENCES = frozenset(
    ("seq", "sequence", "seqno", "seqnum", "sequenceno", "sequencenumber", "counter")
)
"""The same of whole numbers alone: what else is called a sequence is not made by counting."""
_BESIDE_A_BODY = frozenset(
    (
        *("traceid", "spanid", "parentspanid", "traceparent"),
        *("sessionid", "sessionuuid", "sessionaffinity", "turnid", "promptid"),
    )
)
"""Tell a request by what is said of it: in a body alone they may be the trace that is deleted."""
_LASTING = _BESIDE_A_BODY | {"correlationid"}
"""Of those the ones that several requests have, and none of them means the other by it."""
_IN_A_QUERY = frozenset(
    (
        *("idempotencykey", "idempotencytoken", "dedupid", "deduplicationid", "nonce", "token"),
        *("requestnonce", "requesttoken"),
    )
)
"""What does so in a query or form: any other id there may be of what is looked for."""
_BEFORE_REQUESTS = frozenset(("x", "amz", "sdk", "client"))
"""Words that may stand before: whose identifier it is."""
_SHORT = {"req": "request"}
"""Words that are written shorter."""
_CLIENTS = frozenset(("token",))
"""Names a request only where it is the client's."""
_AROUND_REQUESTS = frozenset(
    (
        *("meta", "metadata", "context", "header", "headers", "extensions", "envelope"),
        *("request", "trace", "tracing"),
        *("clientmetadata", "clientcontext", "requestmetadata", "requestcontext", "tracecontext"),
    )
)
"""Members that hold what is said of a request; in others an identifier is one of what it is about."""

_STAMPS = frozenset(
    (
        *("at", "time", "timestamp", "ts", "date", "datetime", "now", "sent", "created", "updated"),
        *("issued", "generated", "requested", "started", "begun", "began", "clock"),
    )
)
"""When something was made or sent."""
_BESIDE_STAMPS = frozenset(
    (
        *("x", "amz", "client", "request", "event", "log", "sdk", "current", "local", "on"),
        *("ms", "us", "ns", "s", "sec", "seconds", "millis", "nanos", "unix", "utc", "epoch"),
        *("iso", "8601"),
    )
)
"""Words that may be beside: of what, and in which form."""
_PLANNED = frozenset(
    (
        *("due", "birth", "delivery", "departure", "arrival", "deadline", "booking", "appointment"),
        *("meeting", "schedule", "scheduled", "reminder", "calendar", "filter", "range", "window"),
        *("start", "end", "until", "since", "from", "to", "expiry", "expires", "valid"),
    )
)
"""What is around a time that somebody has chosen."""

_PARTIES = frozenset(
    (
        *(
            "to",
            "from",
            "payee",
            "payer",
            "account",
            "acct",
            "customer",
            "cust",
            "user",
            "username",
        ),
        *(
            "recipient",
            "receiver",
            "sender",
            "beneficiary",
            "creditor",
            "debtor",
            "buyer",
            "seller",
        ),
        *("merchant", "vendor", "supplier", "client", "member", "owner", "holder", "cardholder"),
        *("assignee", "author", "contact", "person", "patient", "employee", "subscriber", "guest"),
        *("tenant", "organization", "organisation", "org", "company", "party", "counterparty"),
        *("wallet", "iban", "bank", "card", "address", "addr", "email", "phone"),
        *("source", "destination", "target", "cc", "bcc"),
    )
)
_OF_A_PARTY = frozenset(
    ("id", "ids", "uuid", "guid", "uid", "key", "ref", "reference", "no", "number", "name", "value")
)
"""Words that say how the party is named, behind its own."""

_QUANTITIES = frozenset(
    (
        *("amount", "amt", "price", "cost", "fee", "total", "subtotal", "sum", "balance", "value"),
        *("quantity", "qty", "units", "shares", "stake", "payment", "charge", "refund", "payout"),
        *("limit", "budget", "salary", "tip", "tax", "discount", "rate", "percent", "size"),
        *("count", "micros", "cents", "wei", "gwei", "satoshi", "sats", "lamports", "currency"),
    )
)


_DEEDS = frozenset(
    (
        *("pay", "paid", "payroll", "transfer", "withdraw", "deposit", "invoice", "order"),
        *("purchase", "buy", "sell", "trade", "book", "booking", "cancel", "delete", "remove"),
        *("drop", "erase", "send", "mail", "message", "sms", "invite", "approve", "reject"),
        *("grant", "revoke", "ban", "publish", "deploy", "terminate", "shutdown", "unlock"),
        *("open", "mint", "burn", "donate", "subscribe", "unsubscribe", "ship", "shipment"),
        *("prescribe", "dose", "vote", "bid", "currency", "usd", "eur", "gbp", "chf", "jpy"),
        *("btc", "eth", "usdc", "usdt"),
    )
)
"""Words by which an event may be an order to do something."""


def names_request(place: str, *, counts: bool = False, own: frozenset[str] = frozenset()) -> bool:
    """Say whether a place is called as the identifier of a request or process is, and is where one would be.

    counts: the values there are whole numbers that count by one.
    own: words of the client's own name, which may be before that of the identifier.
    """
    what, steps = _read(place)
    if not steps:
        return False
    before, name = _read_request_name(steps[-1], own)
    if name in _CLIENTS and "client" not in before:
        return False
    if name not in _REQUESTS and not (counts and name in _SEQUENCES):
        return False
    if what in ("query", "form"):
        return len(steps) == 1 and name in _IN_A_QUERY
    if what != "body":
        return len(steps) == 1
    if len(steps) == 1 and name in _BESIDE_A_BODY:
        return False
    return all("".join(name_words(step)) in _AROUND_REQUESTS for step in steps[:-1])


def names_lasting(place: str) -> bool:
    """Say whether a place is called as the identifier of what lasts for several requests is, as a session or a trace."""
    steps = _read(place)[1]
    return bool(steps) and _read_request_name(steps[-1], frozenset())[1] in _LASTING


def _read_request_name(step: str, own: frozenset[str]) -> tuple[list[str], str]:
    """Give the words before the name of an identifier of requests, and that name, written in one word."""
    words = name_words(step)
    before = 0
    while before < len(words) - 1 and (words[before] in _BEFORE_REQUESTS or words[before] in own):
        before += 1
    return words[:before], "".join(_SHORT.get(word, word) for word in words[before:])


def names_time(place: str) -> bool:
    """Say whether a place is called as the time at which something was made or sent is."""
    _, steps = _read(place)
    if not steps:
        return False
    words = name_words(steps[-1])
    if _STAMPS.isdisjoint(words) or not set(words) <= _STAMPS | _BESIDE_STAMPS:
        return False
    around = {word for step in steps[:-1] for word in name_words(step)}
    return _PLANNED.isdisjoint(around)


def names_quantity(place: str) -> bool:
    """Say whether a word of the last name of a place says how much of something it is."""
    steps = _read(place)[1]
    words = name_words(steps[-1]) if steps else []
    return any(one in _QUANTITIES or one.removesuffix("s") in _QUANTITIES for one in words)


def names_party(place: str) -> bool:
    """Say whether a place is called as somebody is with whom something is done."""
    words = [word for step in _read(place)[1] for word in name_words(step)]
    while len(words) > 1 and words[-1] in _OF_A_PARTY:
        words.pop()
    return bool(words) and (words[-1] in _PARTIES or words[-1].removesuffix("s") in _PARTIES)


def _read(place: str) -> tuple[str, list[str]]:
    """Give what holds a place, and the names on the way to it; indexes of lists are none."""
    what, _, path = place.partition(" ")
    if what == "body":
        path = path.removeprefix("$") if path.startswith("$") else ""
    elif what in ("query", "form"):
        path = unquote_plus(path)
    return what, [step for step in _STEP.findall(path) if not step.isdigit()]


def name_words(name: str) -> list[str]:
    """Give the words of a name in lower case: of `customerId` and `customer_id` two."""
    return [word.lower() for word in _WORD.findall(name)]


def names_deed(words: Iterable[str]) -> bool:
    """Say whether one of some words is a party, a quantity, or something that is done to one."""
    return any(
        one in known or one.removesuffix("s") in known
        for one in words
        for known in (_PARTIES, _QUANTITIES, _DEEDS)
    )
