"""An upstream whose certificate the proxy does not trust: the receipt names the setting that adds its root."""

import contextlib
from pathlib import Path

from playhead.config import Config, Mode
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.tls import client_context
from playhead.tests.support.wire import tunnel


async def _say(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_an_unknown_root_of_an_upstream_has_the_receipt_name_the_option(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Not the client's trust variables: it trusts the proxy, which does not trust the upstream."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    with Deck(config) as deck, RawOrigin(_say, certificates) as origin:
        authority = origin.url.partition("//")[2]
        with tunnel(deck.proxy, authority, "untrusted") as opened, contextlib.suppress(OSError):
            client_context(deck.running.ca).wrap_socket(opened, server_hostname="127.0.0.1")
        deck.end("untrusted")
        receipt = deck.receipt("untrusted")
    assert [row["kind"] for row in receipt.faults] == ["tls"]
    assert "--upstream-ca" in " ".join(receipt.warnings)
