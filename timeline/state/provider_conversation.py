"""What the provider keeps of a conversation under an id, rebuilt from the calls of a run: turns, and what the run itself added or deleted.

An item that is deleted is found by its id: in an answer of a model, in what was added, or in a list that was read of the conversation.
Who deletes one that none of these has, as what the user said, may have deleted anything: that is told apart.

A turn is in a conversation once its response is completed: one that failed or was cancelled adds nothing, not even what it was asked. Of
one without an end, or that ended incomplete, nobody knows: that is told apart, too.

Source: OpenAI API reference, "Conversations", and "Responses" (`conversation`: "automatically added to this conversation after this
response completes"; `status`); "Background mode".
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
_ONE = re.compile(r"/conversations/([^/]+)/?")
_RESPONSE = re.compile(r"/responses/([^/]+)(/cancel)?/?")
_COMPLETED = "completed"
_ENDED_WITHOUT = ("failed", "cancelled")
"""Statuses of responses that add nothing."""

_Entry = list[tuple[str | None, list[ContextPart]]]
"""Items, each with its id where it is known."""


@dataclass(slots=True)
class Stored:
    """A conversation at the provider."""

    turns: list[tuple[Seq, list[ContextPart]]] = field(default_factory=list)
    """By the exchange that has them, the oldest first."""
    unplaced: list[Seq] = field(default_factory=list)
    """Deletions of what no exchange of the run has by its id, and those without an answer."""
    doubtful: list[Seq] = field(default_factory=list)
    """Calls whose turn is left out although the provider may have added it."""
    deleted_by: Seq | None = None
    """The exchange that deleted the conversation."""


def rebuild_conversation(exchanges: Exchanges, call: ModelCall, name: str) -> Stored:
    """Put together what the provider keeps under an id before a call, as far as the run has it."""
    seqs = exchanges.seqs
    until = bisect_left(seqs, call.seq)
    about = list[Exchange]()
    later = dict[str, JsonObject]()
    for seq in seqs[max(0, until - HORIZON) : until]:
        exchange = exchanges.find(seq)
        if exchange is None:
            continue
        if "/conversations" in exchange.request.path:
            about.append(exchange)
        elif (found := _find_response(exchange)) is not None:
            later[found[0]] = found[1]
    entries, stored = dict[Seq, _Entry](), Stored()
    for one in calls_before(exchanges, call):
        if one.context.conversation == name and len(entries) < _MOST:
            made = _find_made(exchanges, one)
            tree = _response_tree(made)
            tree = later.get(as_text(tree.get("id")) or "", tree)
            is_added = _is_added(one, tree)
            if is_added is None:
                stored.doubtful.insert(0, one.seq)
            elif is_added:
                # Several calls of one WebSocket are one entry; the last comes first.
                entries[one.seq] = _turn(one, made, tree) + entries.get(one.seq, [])
    listed = dict[str, list[ContextPart]]()
    for exchange in about:
        _change(exchange, name, entries, listed, stored)
    stored.turns = [
        (seq, [part for _, parts in entries[seq] for part in parts])
        for seq in sorted(entries)
        if any(parts for _, parts in entries[seq])
    ]
    return stored


def find_deleted_responses(exchanges: Exchanges, call: ModelCall) -> dict[str, Seq]:
    """Find the responses that the run deleted before a call: by their ids, the exchange that did."""
    seqs, deleted = exchanges.seqs, dict[str, Seq]()
    until = bisect_left(seqs, call.seq)
    for seq in seqs[max(0, until - HORIZON) : until]:
        exchange = exchanges.find(seq)
        if exchange is None or exchange.request.method != "DELETE":
            continue
        found = _RESPONSE.search(exchange.request.path)
        response = exchange.response
        if found is None or found[2] or found.end() != len(exchange.request.path):
            continue
        if response is not None and 200 <= response.status < 300:
            deleted.setdefault(unquote(found[1]), exchange.seq)
    return deleted


def _find_response(exchange: Exchange) -> tuple[str, JsonObject] | None:
    """Find the response that an exchange read or cancelled, with its id: one in the background ends after its call was answered."""
    found = _RESPONSE.search(exchange.request.path)
    response = exchange.response
    if found is None or found.end() != len(exchange.request.path):
        return None
    if response is None or not 200 <= response.status < 300 or exchange.request.method == "DELETE":
        return None
    tree = _answer(response)
    return (unquote(found[1]), tree) if as_text(tree.get("status")) else None


def _is_added(call: ModelCall, tree: JsonObject) -> bool | None:
    """Say whether a call's turn is in its conversation; None where that is not known.

    tree: the last that is known of its response.
    """
    answer, status = call.answer, as_text(tree.get("status"))
    if status == _COMPLETED:
        return True
    if status in _ENDED_WITHOUT or (answer is not None and answer.error is not None):
        return False
    if status is None and answer is not None and answer.complete and answer.choices:
        return True  # what speaks this format and states no status
    return None


def _find_made(exchanges: Exchanges, call: ModelCall) -> Exchange:
    exchange = exchanges.get(call.seq)
    return exchanges.get_part(exchange, call.part) if call.part else exchange


def _turn(call: ModelCall, made: Exchange, tree: JsonObject) -> _Entry:
    """Give the parts of a request, and each item of its answer.

    tree: the response, perhaps as it was read later.
    """
    names: dict[str, str] = {}
    found: _Entry = [(None, split_items(call.context.items, names))]
    items = as_objects(as_list(tree.get("output")))
    parts = [(as_text(item.get("id")), _read(item, made, names)) for item in items]
    message = call.answer.message if call.answer is not None else None
    whole = split_items([Item((message,), call.seq)], names) if message is not None else []
    if not whole:
        return [*found, *parts]
    # Who reads the answer in another way has it as a whole.
    is_same = [one.key for _, some in parts for one in some] == [one.key for one in whole]
    return [*found, *parts] if is_same else [*found, (None, whole)]


def _response_tree(exchange: Exchange) -> JsonObject:
    response = exchange.response
    if response is None or response.spilled is not None:
        return {}
    return as_object(read_tree(exchange.request, response))


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
        whole = _ONE.search(request.path)
        is_whole = whole is not None and whole.end() == len(request.path)
        if request.method == "DELETE" and is_whole and whole is not None and response is not None:
            stored.deleted_by = exchange.seq if unquote(whole[1]) == name else stored.deleted_by
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
