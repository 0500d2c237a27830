"""Which patterns of profiles would hide content: ordinary texts, and how the group itself is made.

A group may find what a program draws: ids, hashes, times. It may not find what somebody says: words with spaces between them, names, or plain
numbers, unless enough of the client's own text stands beside them.
"""

import re

from ..parse_values import check_regex, compile_regex
from ..parse_values import show as shown

_PROSE = (
    "Refund order 4711 of alice@example.com: 250.00 EUR, and delete /srv/data/report-2026.csv!",
    "rm -rf build && git commit -m 'fix the parser' # see issue 12",
    '{"amount": 120, "currency": "usd", "note": "paid twice"}',
    "true",
    "gpt-5-mini",
    "42",
)
"""Content: what finds anything in it is too wide. Each stands alone, and as a line among others."""
_TEXTS = (
    "please delete every record of the customers in production and tell nobody about it",
    "Summarise the monthly report for the board of directors, then send it to Johnson and Miller.",
    "transfer everything to the account of the new supplier before the end of this week; " * 4,
    "for row in rows:\n    if row.total > 100:\n        cancel(row.id)\n",
    "SELECT name, total FROM orders WHERE customer_id = 1207 ORDER BY total DESC LIMIT 20;",
    "https://shop.example.com/orders/1207?page=3&sort=price",
    "/home/alice/projects/billing/src/main.py",
    "refund 25\nrefund 4900\npay 1000000 now",
    "customer Anderson, customer Johnson, customer Miller",
    "<b>Total:</b> 1,250.00 EUR on 24 November 2026 at 15:30",
    *(
        f"{verb} {number} to the customer"
        for verb in ("transfer", "refund", "send")
        for number in (5, 4900, 1000000)
    ),
    *(
        f"{what} {number}"
        for what in ("quantity", "order number", "invoice", "page")
        for number in (5, 4900, 1000000)
    ),
)
"""The same for places in bodies."""
_MEMBERS = (
    *("amount", "total", "total_amount", "amount_in_cents", "price", "quantity", "count", "number"),
    *("customer_id", "order_id", "user_id", "account_id", "invoice_number", "transaction_id", "id"),
    *("limit", "offset", "page", "size", "port", "timeout", "max_tokens", "seed", "year", "index"),
)
_NUMBERS = (
    "5",
    "42",
    "120",
    "4900",
    "12500",
    "250000",
    "1234567",
    "20261124",
    "123456789",
    "250.00",
)
_JSON = tuple(
    f'{{"{name}":{blank}{number},"ok":true}}'
    for name in _MEMBERS
    for number in _NUMBERS
    for blank in ("", " ")
)
_WORDS = (
    *("red", "north", "Miller", "Johnson", "Anderson", "production", "summarise", "transactions"),
    *(
        "please delete everything",
        "please delete everything ",
        "delete every record of the customers in production",
    ),
    *(
        "alice@example.com",
        "bob@shop.io",
        "info@mail.test",
        "/srv/data/report.csv",
        "main.py",
        "orders_archive",
        "us-west",
        "gpt-mini",
    ),
)
"""Of such lengths that one form of a fixed length has at most one or two."""
_MOST_LENGTHS = 2
OWN_LETTERS = 8
"""Letters of the client's own beside a group that finds plain numbers."""
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?P?<\w+>|\(\?[A-Za-z-]*[:)]|\(|\)[?*]?|.",
    re.DOTALL,
)
"""One step of a pattern: an escape, a class, a bracket with what follows it, a character."""


def check_narrow(text: str) -> str:
    """Give a pattern as written if it has one group, and finds nothing in content.

    Raises: ValueError, whose text says what would be right.
    """
    compiled = compile_regex(check_regex(text))
    if compiled.groups != 1:
        count = "no group" if not compiled.groups else f"{compiled.groups} groups"
        raise ValueError(
            f"{shown(text)} has {count}; expected one, around the part that is new each time: the rest counts"
        )
    for prose in (*_PROSE, "\n".join(_PROSE)):
        found = compiled.search(prose.encode())
        if found is not None:
            raise ValueError(
                f"{shown(text)} would hide content: it finds {shown((found[1] or b'').decode())} in plain text; expected the"
                " form of the value, or the text around it"
            )
    return text


def find_wide(text: str) -> str:
    """Say why a pattern with one group is too wide for a place in a body; empty where it is not."""
    compiled = compile_regex(text)
    for one in (*_TEXTS, *_JSON):
        found = compiled.search(one.encode())
        if found is not None:
            return f"{shown(text)} would hide content: it finds {shown((found[1] or b'').decode())} in {shown(one)}; expected the text around it that only this client writes"
    group, beside = _split(text)
    for token in _TOKEN.findall(group):
        if _is_free(token):
            return f"{shown(text)} would hide content: {shown(token)} in its group takes letters and spaces; expected the form of the value"
    alone = compile_regex(f"(?:{group})")
    words = [one for one in _WORDS if alone.fullmatch(one.encode())]
    if len({len(one) for one in words}) > _MOST_LENGTHS or any(" " in one for one in words):
        return f"{shown(text)} would hide content: its group takes words, as {shown(words[-1])}; expected the form of the value"
    numbers = [one for one in _NUMBERS if alone.fullmatch(one.encode())]
    # What also takes hexadecimal digits of one length is a hash.
    plain = [one for one in numbers if not alone.fullmatch(b"a" * len(one))]
    if (plain or len({len(one) for one in numbers}) > 1) and beside < OWN_LETTERS:
        return f"{shown(text)} would hide content: its group takes plain numbers; expected at least {OWN_LETTERS} letters beside it that only this client writes"
    return ""


def _is_free(token: str) -> bool:
    """Say whether one step of a pattern takes letters as well as spaces."""
    try:
        step = compile_regex(token)
    except ValueError:  # a part of one, as a bracket
        return False
    return bool(step.fullmatch(b" ") and (step.fullmatch(b"q") or step.fullmatch(b"Q")))


def _split(text: str) -> tuple[str, int]:
    """Give what is inside the one group of a pattern, and how many letters have to be beside it."""
    inside = list[str]()
    beside = 0
    levels = list[tuple[bool, int]]()
    """Of open brackets: whether it is the group, and the letters before it."""
    for token in _TOKEN.findall(text):
        in_group = any(is_group for is_group, _ in levels)
        if token[0] == "(" and token[-1] != ")":
            is_group = token == "(" or token[-1] == ">"
            levels.append((is_group, beside))
            if is_group:
                continue
        elif token[0] == ")" and levels:
            is_group, before = levels.pop()
            if is_group:
                continue
            if len(token) > 1 and not in_group:
                beside = before  # it may be left out
        elif token == "|" and not in_group:
            beside = 0
        elif not in_group and token.isalpha():
            beside += 1
        if in_group:
            inside.append(token)
    return "".join(inside), beside
