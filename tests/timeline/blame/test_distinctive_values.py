"""Which values two places have by no chance, and how one number in two answers is told."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, text, user
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.looking_back import write_store
from playhead.timeline.blame.distinctive_values import is_telling, may_be_an_amount
from playhead.timeline.blame.find_origin import Blame, find_blame
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.step import Evidence


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        *[
            (one, True)
            for one in ("ORD-5531-X", "SKU-AB12CD34", "re_8Zk29", "4120.57", "5531000123")
        ],
        *[
            (one, True)
            for one in ("tok_5Rt8Wq", "ORD-TKBUGBK", "3.7119", "https://shop.test/orders/A7")
        ],
        *[(one, True) for one in ("ord-7f3k2-20251101", "db.shop.test:8080")],
        # Models with their days, versions, quarters, pictures, collations, this machine.
        *[
            (one, False)
            for one in ("claude-opus-4-5-20251101", "gpt-4o-mini-2024-07-18", "v1beta1", "FY2026")
        ],
        *[
            (one, False)
            for one in ("Q4-2026", "1920x1080", "utf8mb4_general_ci", "localhost:8080", "200 OK")
        ],
        *[(one, False) for one in ("127.0.0.1:8080", "https://example.com", "404 Not Found")],
        # Places, departments, regions, models and machines are named so in many places.
        *[
            (one, False)
            for one in ("United States", "San Francisco", "Customer Service", "New York City")
        ],
        *[
            (one, False)
            for one in ("us-east-1", "eu-west-2b", "gpt-4o-mini", "claude-opus-4-5", "x86_64")
        ],
        *[(one, False) for one in ("US-EAST-1A", "ISO-8859-1", "windows-1252", "UTF-16LE")],
        *[(one, False) for one in ("HTTP/1.1", "TLSv1.3", "curl/8.5.0", "python-requests/2.32.3")],
        *[(one, False) for one in ("en-US,en;q=0.9", "gzip, deflate, br", "private, max-age=0")],
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", False),
        # Days in all notations; a time of a day is another matter.
        *[(one, False) for one in ("20261205", "2026/12/05", "05.12.2026", "12/5/2026")],
        *[(one, False) for one in ("5 December 2026", "Dec 5, 2026", "Sat, 05 Dec 2026")],
        *[(one, True) for one in ("20261305", "20261205143107", "2026-12-05T14:31:07Z")],
        *[(one, True) for one in ("Rosenheimer Allee 99, 81669 Town", "ORD-1234-X", "A1B2-C3D4")],
        # Words and quantities, however they are put together.
        *[
            (one, False)
            for one in ("2nd quarter", "3rd quarter", "30 days", "365days", "10 EUR", "EUR 10")
        ],
        *[
            (one, False)
            for one in ("United States of America", "São Tomé and Príncipe", "Côte d'Ivoire")
        ],
        *[
            (one, False)
            for one in ("Please try again later", "lorem ipsum dolor sit amet", "200 OK then")
        ],
        *[(one, False) for one in ("Content-Type", "SELECT * FROM users", "123 Main Street")],
        *[
            (one, False)
            for one in ("iPhone 15", "A320neo", "vitamin b12", "取消订单", "Отменить заказ")
        ],
        # Charsets, locales, standards, addresses of examples, round times, colours.
        *[(one, False) for one in ("utf8mb4", "en_US.UTF-8", "ISO 9001", "ISO27001", "RFC 9110")],
        *[(one, False) for one in ("test@example.com", "2026-11-28T09:00:00Z", "$ 10.00")],
        *[(one, False) for one in ("#ff0000", "rgb(0,0,0)", "hsl(120, 100%, 50%)")],
        *[(one, True) for one in ("order 88XK21", "Invoice 412057 is due", "ana.berg@shop.test")],
        ("The parcel of the customer was opened before it came here", True),
        *[(one, False) for one in ("Windows 11", "requires_action", "3.1415", "2.71828", "v1.2.3")],
    ],
)
def test_a_value_tells_where_it_comes_from(text: str, telling: bool) -> None:
    """Only what no other place has by chance."""
    assert is_telling(text) is telling


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4120.57", True),
        ("3226109", True),
        ("5531000123", False),
        ("ORD-7", False),
        ("-12.5", True),
    ],
)
def test_an_amount_is_a_number_that_two_things_may_have(text: str, amount: bool) -> None:
    """With a fraction, or of fewer digits than an id has."""
    assert may_be_an_amount(text) is amount


def _refund(folder: Path, *reads: tuple[str, Any]) -> str:
    """Give the evidence and the doubt of an amount that is paid behind some reads."""
    tape = Tape("refund")
    for url, answered in reads:
        tape.get(url, answered)
    tape.post("https://pay.test/refunds", {"amount": 4120.57}, {"ok": True})
    store = write_store(
        folder / f"{len(list(folder.iterdir()))}",
        partial(write_run, name="r", exchanges=tape.exchanges),
    )
    with Store.open(store, readonly=True) as opened:
        found = find_blame(Exchanges(opened, opened.runs.get("r")), len(tape.exchanges), "$.amount")
    return f"{found.evidence} {found.doubt}".strip()


def test_a_number_that_two_answers_have_is_inferred(tmp_path: Path) -> None:
    """The shipping costs as much as the order: no bytes say which of the two was paid."""
    quote = ("https://shop.test/quotes/1", {"quote": 4120.57})
    total = ("https://shop.test/orders/7", {"total": 4120.57})
    assert _refund(tmp_path, quote, total).startswith("inferred 2 answer")
    assert _refund(tmp_path, quote) == "recorded"
    # Read again, it is the same.
    assert _refund(tmp_path, quote, quote) == "recorded"
    again = ("https://shop.test/v2/orders/7", {"order": {"total": 4120.57}})
    assert (
        _refund(tmp_path, again, ("https://shop.test/all", {"order": {"total": 4120.57}}))
        == "recorded"
    )


def _pay(folder: Path, amount: Any, *reads: Any) -> Blame:
    """Ask where an amount is from that is paid behind some reads; a read of a list is a user's words to a model."""
    tape = Tape("pay")
    for number, answered in enumerate(reads):
        if isinstance(answered, list):
            tape.model(anthropic([user(*answered)]), anthropic_stream(text("Well.")))
        else:
            tape.get(f"https://shop.test/{number}", answered)
    tape.post("https://pay.test/refunds", {"amount": amount}, {"ok": True})
    store = write_store(folder / "store", partial(write_run, name="r", exchanges=tape.exchanges))
    with Store.open(store, readonly=True) as opened:
        return find_blame(Exchanges(opened, opened.runs.get("r")), len(tape.exchanges), "$.amount")


@pytest.mark.parametrize(
    ("amount", "reads", "doubt"),
    [
        # Another answer has it in cents, in dollars, or in another notation, before or behind.
        (4871, ({"limit": 4871}, {"total": "48.71"}), "2 answer $.total has a hundredth of it"),
        (4871, ({"limit": 4871}, {"total": 48.71}), "2 answer $.total has a hundredth of it"),
        (4871, ({"total": "48.71"}, {"limit": 4871}), "1 answer $.total has a hundredth of it"),
        (48.71, ({"rate": 48.71}, {"cents": 4871}), "2 answer $.cents has a hundredfold of it"),
        ("48.71", ({"rate": "48.71"}, {"n": 4871}), "2 answer $.n has a hundredfold of it"),
        (4871, ({"limit": 4871}, {"total": "EUR 4,871"}), "2 answer $.total has it, too"),
        # The user may have said it before.
        (
            4871,
            (["Refund 48.71."], {"limit": 4871}),
            "1 request $.messages[0].content[0].text has a hundredth of it",
        ),
        # The same answer in both units is one candidate; so is another number no other.
        (4871, ({"total": 4871, "shown": "48.71"},), ""),
        (4871, ({"limit": 4871}, {"total": "48.72"}), ""),
        (4871, ({"limit": 4871}, {"total": "148.71"}), ""),
        (4871000123, ({"limit": 4871000123}, {"total": "48710001.23"}), ""),
    ],
)
def test_a_number_in_another_unit_is_another_candidate(
    tmp_path: Path, amount: Any, reads: tuple[Any, ...], doubt: str
) -> None:
    """An amount in cents may be a price in dollars that another answer has: it is named, and nothing is proved."""
    found = _pay(tmp_path, amount, *reads)
    assert found.doubt == doubt
    assert found.evidence is (Evidence.INFERRED if doubt else Evidence.RECORDED)
    assert [one.startswith(doubt) for one in found.hints] == [True] * ("hundred" in doubt)
