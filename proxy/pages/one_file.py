"""`playhead export --html`: a run as one file, redacted and signed; and whether a file that somebody was given is as it was signed."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...config import Config
from ...store import RunInfo, Store
from ...timeline.formats.tape_file import Progress
from ...timeline.reading.call_cost import has_prices
from ...web.one_file import hash_content, make_file, signed_part, split_file
from ..operations.find_tape import redactor_of
from ..trust.receipt_signature import BadReceipt, Signer, check, public_key, sign
from ..trust.secret_files import open_receipt_key, open_redaction_key


def export_html(config: Config) -> Callable[..., list[RunInfo]]:
    """Give what writes a run of this configuration's store as one file."""
    return partial(_export, config)


def _export(
    config: Config,
    store: Store,
    info: RunInfo,
    write: Callable[[bytes], object],
    progress: Progress,
) -> list[RunInfo]:
    price = None
    if has_prices():
        from ...timeline.cost.ledger import price_call

        price = price_call
    redactor = redactor_of(config, open_redaction_key(config.store))
    seed = open_receipt_key(config.store)
    file = make_file(store, info, redactor.redact_text, price, progress)
    write(file.make(sign(signed_part(store, info, file, redactor.redact_text), seed)))
    return [info]


def find_public_key(config: Config) -> str:
    """Give the key by which a receiver checks what this store signs: 64 hexadecimal digits."""
    return public_key(open_receipt_key(config.store)).hex()


def check_file(data: bytes, signer: Signer) -> dict[str, Any]:
    """Give the receipt in a file, or of one that is a receipt itself, if it is as it was signed.

    Raises: BadReceipt.
    """
    if data.lstrip()[:1] != b"<":
        return check(data, signer)
    parts = split_file(data)
    if parts is None:
        raise BadReceipt("it has no receipt, or more than one")
    document = check(parts[1], signer)
    if document.get("content") != hash_content(parts[0], parts[2]):
        raise BadReceipt("the file was changed after its receipt was signed")
    return document
