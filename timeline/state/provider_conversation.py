"""What the provider keeps of a conversation under an id, rebuilt from the calls of a run: turns, and what the run itself added or deleted.

An item that is deleted is found by its id: in an answer of a model, in what was added, or in a list that was read of the conversation.
Who deletes one that none of these has, as what the user said, may have deleted anything: that is told apart.

Source: OpenAI API reference, "Conversations".
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from urllib.parse import unquote

from ...tape.dialects import openai_responses
from ...tape.dialects.common.untrusted_json import (
    Json,
    JsonObject,
    as_list,
    as_object,
    as_objects,
    as_text,
    find_json,
)
from ...tape.dialects.reader import read_tree
from ...tape.exchange import Exchange, Response, Seq
from ..steps.model_call import ModelCall
from ..steps.model_context import Item
from .calls_before import HORIZON, Exchanges, calls_before
from .context_parts import ContextPart, short, split_items

_MOST = 1000
"""Most exchanges that a conversation is rebuilt from."""
_ITEMS = re.compile(r"/conversations/([^/]+)/items(?:/([^/]+))?/?")
_CREATE = re.compile(r"/conversations/?")

_Entry = list[tuple[str | None, list[ContextPart]]]
"""Items, each with its id where it is known."""


@dataclass(slots=True)
class Stored:
    """A conversation at the provider."""

    turns: list[tuple[Seq, list[ContextPart]]] = field(default_factory=list)
    """By the exchange that has them, the oldest first."""
    unplaced: list[Seq] = field(default_factory=list)
    """Deletions of what no exchange of the run has by its id, and those without an answer."""


def rebuild_conversation(exchanges: Exchanges, call: ModelCall, name: str) -> Stored:
    """Put together what the provider keeps under an id before a call, as far as the run has it."""
    entries = dict[Seq, _Entry]()
    for found in calls_before(exchanges, call):
        if found.context.conversation == name and len(entries) < _MOST:
            # Several calls of one WebSocket are one entry; the last comes first.
            entries[found.seq] = _turn(exchanges, found) + entries.get(found.seq, [])
    stored, listed = Stored(), dict[str, list[ContextPart]]()
    seqs = exchanges.seqs
    until = bisect_left(seqs, call.seq)
    for seq in seqs[max(0, until - HORIZON) : until]:
        exchange = exchanges.find(seq)
        if exchange is not None and "/conversations" in exchange.request.path:
            _change(exchange, name, entries, listed, stored)
    stored.turns = [
        (seq, [part for _, parts in entries[seq] for part in parts])
        for seq in sorted(entries)
        if entries[seq]
    ]
    return stored


def _turn(exchanges: Exchanges, call: ModelCall) -> _Entry:
    """Give the parts of a request, and each item of its answer."""
    names: dict[str, str] = {}
    found: _Entry = [(None, split_items(call.context.items, names))]
    message = call.answer.message if call.answer is not None else None
    if message is None:
        return found
    exchange = exchanges.get(call.seq)
    made = exchanges.get_part(exchange, call.part) if call.part else exchange
    whole = split_items([Item((message,), call.seq)], names)
    items = _answer_items(made)
    parts = [(as_text(item.get("id")), _read(item, made, names)) for item in items]
    # Who reads the answer in another way has it as a whole.
    is_same = [one.key for _, some in parts for one in some] == [one.key for one in whole]
    return [*found, *parts] if is_same else [*found, (None, whole)]


def _answer_items(exchange: Exchange) -> list[JsonObject]:
    response = exchange.response
    if response is None or response.spilled is not None:
        return []
    return as_objects(as_list(as_object(read_tree(exchange.request, response)).get("output")))


def _read(item: JsonObject, exchange: Exchange, names: dict[str, str]) -> list[ContextPart]:
    asked = openai_responses.read_request({"input": [item]}, exchange.request)
    if asked is None:
        return []
    parts = [ContextPart("system", asked.system)] if asked.system else []
    parts += split_items([Item((one,), exchange.seq) for one in asked.messages], names)
    for one in parts:
        one.since = exchange.seq
    return parts


def _change(
    exchange: Exchange,
    name: str,
    entries: dict[Seq, _Entry],
    listed: dict[str, list[ContextPart]],
    stored: Stored,
) -> None:
    """Apply what an exchange does to the items of a conversation; `listed` has those that were read of it."""
    request, response = exchange.request, exchange.response
    found = _ITEMS.search(request.path)
    if found is not None and (unquote(found[1]) != name or found.end() != len(request.path)):
        return
    if response is not None and not 200 <= response.status < 300:
        return
    said = _answer(response)
    if found is None:
        created = _CREATE.search(request.path)
        is_new = created is not None and created.end() == len(request.path)
        if request.method == "POST" and is_new and as_text(said.get("id")) == name:
            entries[exchange.seq] = _added(exchange, [])
    elif request.method == "POST" and response is not None:
        entries[exchange.seq] = _added(exchange, as_objects(as_list(said.get("data"))))
    elif request.method == "DELETE" and found[2] is not None:
        item = unquote(found[2])
        if response is None or not _delete(item, entries, listed.get(item)):
            stored.unplaced.append(exchange.seq)
    elif request.method == "GET":
        items = as_objects(as_list(said.get("data"))) if found[2] is None else [said]
        for one in items:
            if (item_id := as_text(one.get("id"))) is not None:
                listed[item_id] = _read(one, exchange, {})


def _answer(response: Response | None) -> JsonObject:
    whole = response is not None and response.spilled is None
    return as_object(find_json(response.body)) if whole and response is not None else {}


def _added(exchange: Exchange, made: list[JsonObject]) -> _Entry:
    """Give the items of a request; their ids are in its answer."""
    tree: Json = find_json(exchange.request.body) if exchange.request.spilled is None else None
    items = as_objects(as_list(as_object(tree).get("items")))
    ids = [as_text(one.get("id")) for one in (made if len(made) == len(items) else items)]
    return [(id_, _read(one, exchange, {})) for id_, one in zip(ids, items, strict=True)]


def _delete(item: str, entries: dict[Seq, _Entry], listed: list[ContextPart] | None) -> bool:
    """Take an item away; say whether it was there."""
    for entry in entries.values():
        for at, (id_, _) in enumerate(entry):
            if id_ == item:
                del entry[at]
                return True
    wanted = [short(one) for one in listed or ()]
    if not wanted:
        return False
    for seq in sorted(entries):
        for id_, parts in entries[seq]:
            if id_ is None and [short(one) for one in parts] == wanted:
                parts.clear()
                return True
    return False
