"""Changes that are planted into a tape: what a tool was answered, and what the model answered.

The planted tape is another run of the same store. Texts keep their lengths, so that chunks and frames stay as they were recorded.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from playhead.store import Record, RunInfo, Store
from playhead.tape.canonical.canonical_request import raw_key
from playhead.tape.exchange import Exchange, Message, RequestClass, RunId
from playhead.tests.agents.script import API, MCP

_CHAIR, _TABLE = b"a chair", b"a table"
_ITEM = re.compile(rb'(/items/|\bnumber\\*":\s*)1\b')
"""What the model has looked up: an address in a command, or the argument of a function."""
_OTHER = "3"

Edit = Callable[[Exchange, bytes], bytes]
"""Gives what stands in the place of an answer of an exchange, of the same length."""


def change_tool_result(exchange: Exchange, answer: bytes) -> bytes:
    """Have the first item be called otherwise."""
    request = exchange.request
    is_tool = request.host == MCP or (request.host == API and request.path == "/items/1")
    return answer.replace(_CHAIR, _TABLE) if is_tool else answer


def change_model_answer(exchange: Exchange, answer: bytes) -> bytes:
    """Have the model look up another item."""
    if exchange.request_class is not RequestClass.INFERENCE:
        return answer
    return _ITEM.sub(rb"\g<1>" + _OTHER.encode(), answer)


def is_tool_root(receipt: dict[str, Any]) -> bool:
    """Say whether the root is the call that told the model the changed result, at that place."""
    return any(_TABLE.decode() in unquote(asked) for _, asked in _differences(receipt))


def is_model_root(receipt: dict[str, Any]) -> bool:
    """Say whether the root is the look-up of the other item."""
    root = receipt.get("root") or {}
    asked = f"/items/{_OTHER}"
    return asked in str(root.get("url")) or any(
        asked in unquote(value) or (place.endswith("number") and value == _OTHER)
        for place, value in _differences(receipt)
    )


def _differences(receipt: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for one in (receipt.get("root") or {}).get("differences", ()):
        yield str(one.get("place")), str(one.get("asked"))


def plant(folder: Path, run: str, name: str, edit: Edit) -> bool:
    """Copy a run of a store under another name with a change; False where there was nothing to change."""
    with Store.open(folder) as store:
        info = store.runs.get(run)
        changed = False
        with store.ingest() as ingest:
            number = ingest.begin(name)
            for value in store.events.raw(info):
                ingest.put_event(number, value)
            for exchange in store.exchanges.all(info):
                new = _edit(exchange, edit)
                changed |= new is not exchange
                key = raw_key(new.request, new.request_class)
                ingest.save(number, Record(new, key, None))
                for at, message in enumerate(_messages(store, info, exchange)):
                    said = message
                    if not message.from_client:
                        said = replace(message, data=edit(exchange, message.data))
                    changed |= said.data != message.data
                    ingest.append_message(number, exchange.seq, at, said)
            ingest.publish([replace(info, id=RunId(name), number=number)])
    return changed


def _messages(store: Store, info: RunInfo, exchange: Exchange) -> Iterator[Message]:
    if exchange.websocket is not None:
        yield from store.messages.all(info, exchange.seq)


def _edit(exchange: Exchange, edit: Edit) -> Exchange:
    response = exchange.response
    if response is None:
        return exchange
    body = edit(exchange, response.body)
    if body == response.body:
        return exchange
    return replace(exchange, response=replace(response, body=body))
