"""By what names the control API is asked: the rule itself, without a network."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.control.http.access import Guard
from playhead.proxy.control.http.error_body import ControlError

GUARD = Guard("t" * 43, "http", 8081, frozenset({"127.0.0.1", "localhost", "::1"}))


@given(st.text(max_size=40), st.text(max_size=60))
def test_whatever_is_sent_the_guard_says_no_in_a_sentence(host: str, token: str) -> None:
    """Any text as host, origin and token."""
    fields = [("Host", host), ("Origin", token)]
    with pytest.raises(ControlError) as found:
        GUARD.check_place("/", fields)
    assert found.value.status in (400, 403)
    with pytest.raises(ControlError) as denied:
        GUARD.check_token([("Authorization", f"Bearer {token}")])
    assert denied.value.status == 401
    assert token not in denied.value.to_json().values() or token in ("", "none")


def test_a_guard_of_every_address_takes_addresses_and_no_names() -> None:
    """Whoever names an address means this machine; a name may be anybody's."""
    guard = Guard("t" * 43, "http", 8081, frozenset({"localhost"}), anywhere=True)
    for host, good in [
        ("192.0.2.7:8081", True),
        ("[2001:db8::1]:8081", True),
        ("0.0.0.0:8081", False),
        ("[::]:8081", False),
        ("192.0.2.7:80", False),
        ("attacker.example:8081", False),
    ]:
        if good:
            guard.check_place("/", [("host", host)])
        else:
            with pytest.raises(ControlError):
                guard.check_place("/", [("host", host)])
