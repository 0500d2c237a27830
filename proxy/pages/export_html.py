"""`playhead export --html`: a run as one file, redacted and signed; and whether a file that somebody was given is as it was signed."""

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from ...config import Config
from ...store import RunInfo, Store, StoreKey
from ...timeline.formats.tape_file import Progress
from ...timeline.reading.call_cost import has_prices
from ...timeline.rewriting.copy_redacted import copy_redacted, find_lineage, has_changes
from ...timeline.rewriting.rewrite_run import Rewriter, make_rewriter
from ...web.single_file_page import (
    find_chain,
    hash_content,
    is_own_spelling,
    make_file,
    signed_part,
    split_file,
)
from ..trust.receipt_signature import BadReceipt, Signer, check, public_key, sign
from ..trust.redaction_and_receipt_keys import open_receipt_key, open_redaction_key

_PAGES = frozenset((".xhtml", ".xht", ".shtml", ".mht", ".mhtml"))
"""Of the pages that not every machine's table of types has."""


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
    rewriter = make_rewriter(config, open_redaction_key(config.store))
    seed = open_receipt_key(config.store)
    chain = find_chain(store, info)
    with _redacted(store, info, rewriter, progress) as (copy, copied):
        file = make_file(copy, copied, rewriter.redact_text, price, progress, chain)
        receipt = signed_part(copy, copied, file, rewriter.redact_text)
    write(file.make(sign(receipt, seed)))
    return [info]


@contextlib.contextmanager
def _redacted(
    store: Store, info: RunInfo, rewriter: Rewriter, progress: Progress
) -> Iterator[tuple[Store, RunInfo]]:
    """Give a run as the rules of now would have recorded it: where they change anything, as a copy in a store of a while."""
    lineage = find_lineage(store, info)
    if not has_changes(store, lineage, rewriter, progress):
        yield store, info
        return
    # Its key is nowhere: the store itself may be encrypted.
    key = StoreKey(secrets.token_bytes(32), "memory")
    with (
        tempfile.TemporaryDirectory(prefix="playhead-export-") as folder,
        Store.open(Path(folder) / "store", key=key) as copy,
    ):
        yield copy, copy_redacted(store, lineage, rewriter, copy, progress)


def find_public_key(config: Config) -> str:
    """Give the key by which a receiver checks what this store signs: 64 hexadecimal digits."""
    return public_key(open_receipt_key(config.store)).hex()


def _is_page(name: str) -> bool:
    """Say whether a browser reads a file of this name as markup."""
    kind = guess_type(name)[0] or ""
    return "html" in kind or "xml" in kind or Path(name).suffix.lower() in _PAGES


def check_file(data: bytes, signer: Signer, name: str) -> dict[str, Any]:
    """Give the receipt in a file, or of one that is a receipt itself, if it is as it was signed.

    name: of the file: a browser reads one that is named as a page as a page, also if it is a receipt with markup in its texts.
    Raises: BadReceipt.
    """
    if data.lstrip()[:1] != b"<":
        document = check(data, signer)
        if "content" in document:
            raise BadReceipt("it is the receipt of a page, without the page")
        if data[:1] != b"{" or _is_page(name):
            raise BadReceipt(
                "it is a receipt that a browser may read as a page; expected FILE.json"
            )
        return document
    parts = split_file(data)
    if parts is None:
        raise BadReceipt("it has no receipt, or more than one")
    document = check(parts[1], signer)
    if not is_own_spelling(parts[1]):
        raise BadReceipt("its receipt is spelled otherwise than it was signed")
    if document.get("content") != hash_content(parts[0], parts[2]):
        raise BadReceipt("the file was changed after its receipt was signed")
    return document
