"""What a provider keeps of the conversations of a run, under the ids of answers and of conversations, as the run's exchanges tell it.

The exchanges are taken in order; what is kept is then known for each call as it was when that was made.

An item that is deleted is found by its id: in an answer of a model, in what was added, or in a list that was read of the conversation.
Who deletes one that none of these has, as what the user said, may have deleted anything: that is told apart.

A turn is kept once its response is completed: one that failed or was cancelled adds nothing, not even what it was asked. Of one without an
end, or that ended incomplete, nobody knows: that is told apart, too. An answer in the background is known from where it was read later.

Source: OpenAI API reference, "Conversations", and "Responses" (`conversation`: "automatically added to this conversation after this
response completes"; `previous_response_id`; `status`); "Background mode".
"""

import re
from dataclasses import dataclass, field, replace
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
from ...tape.exchange import Exchange, HttpRequest, Response, Seq
from ..steps.model_call import ModelCall
from ..steps.model_context import Item
from .context_parts import ContextPart, short, split_items

_CONVERSATIONS = "/conversations"
_ITEMS = re.compile(r"/conversations/([^/]+)/items(?:/([^/]+))?/?")
_CREATE = re.compile(r"/conversations/?")
_ONE = re.compile(r"/conversations/([^/]+)/?")
_RESPONSE = re.compile(r"(/responses)/([^/]+)(/cancel)?/?")
_COMPLETED = "completed"
_ENDED_WITHOUT = ("failed", "cancelled")
"""Statuses of responses that add nothing."""
_DIALECT = "openai-responses"


@dataclass(slots=True, eq=False)
class Kept:
    """One item that the provider keeps."""

    seq: Seq
    """The exchange that has it."""
    parts: list[ContextPart]
    id: str | None = None
    """Where it is known."""
    until: int = 0
    """When the run deleted it; 0 while it has not."""

    def is_there(self, at: int) -> bool:
        """Say whether it was not deleted before a time."""
        return not 0 < self.until <= at


@dataclass(slots=True)
class Held:
    """What the provider keeps of that which a call goes on from."""

    items: list[Kept] = field(default_factory=list)
    """The oldest first."""
    root: str = ""
    """Id of the answer or of the conversation whose beginning the run does not have; empty if it has all."""
    broken: int = 0
    """The exchange that names an answer which the run does not have, or 0."""
    doubtful: list[Seq] = field(default_factory=list)
    """Calls without an end, or with an incomplete one: the provider may keep more, or another answer, of them."""
    unplaced: list[Seq] = field(default_factory=list)
    """Deletions of what no exchange of the run has by its id, and those without an answer."""
    deleted: dict[Seq, Seq] = field(default_factory=dict)
    """Of `items`: what the run had deleted whole, and the exchanges that did."""

    @property
    def turns(self) -> list[tuple[Seq, list[ContextPart]]]:
        """The parts by the exchange that has them."""
        found: dict[Seq, list[ContextPart]] = {}
        for one in self.items:
            found.setdefault(one.seq, []).extend(one.parts)
        return [(seq, parts) for seq, parts in found.items() if parts]


class _Turn:
    """A request, and its answer."""

    def __init__(self, call: ModelCall, at: int, names: dict[str, str]) -> None:
        self.seq, self.at = call.seq, at
        self.previous, self.conversation = call.context.previous, call.context.conversation
        self.is_added: bool | None = True
        """Whether the provider keeps it; None where that is not known."""
        self.answer: list[Kept] = []
        self._items = call.context.items
        self._names = names
        self._asked: list[Kept] | None = None
        self._read(call)

    def _read(self, call: ModelCall) -> None:
        answer = call.answer
        tree: JsonObject = {}
        is_plain = answer is not None and answer.complete and answer.finish_reason == _COMPLETED
        if self.conversation or not is_plain:  # else nobody asks for its ids
            tree = _response_tree(call.exchange)
            self.is_added = _is_added(call, tree)
        message = answer.message if answer is not None else None
        parts = split_items([Item((message,), self.seq)], self._names) if message else []
        items = self._read_items(tree)
        # Who reads the answer in another way has it as a whole.
        is_same = [one.key for item in items for one in item.parts] == [one.key for one in parts]
        self.answer = items if is_same or not parts else [Kept(self.seq, parts)]

    def read_later(self, tree: JsonObject) -> None:
        """Take the response as it was read after its call had been answered, where that was not its end."""
        if self.is_added is True:
            return
        status = as_text(tree.get("status"))
        self.is_added = None
        if status == _COMPLETED or status in _ENDED_WITHOUT:
            self.is_added = status == _COMPLETED
        items = self._read_items(tree)
        self.answer = items or self.answer

    def _read_items(self, tree: JsonObject) -> list[Kept]:
        items = as_objects(as_list(tree.get("output")))
        return [
            Kept(self.seq, _read_item(item, self.seq, self._names), as_text(item.get("id")))
            for item in items
        ]

    def items(self, at: int) -> list[Kept]:
        """Give what there was of it at a time."""
        if self._asked is None:
            self._asked = []
            for number, item in enumerate(self._items):
                parts = split_items([item], self._names)
                for one in parts:
                    one.item = number
                self._asked.append(Kept(self.seq, parts))
        return [one for one in (*self._asked, *self.answer) if one.is_there(at)]


class _Added:
    """Items that the run added to a conversation."""

    def __init__(self, seq: Seq, at: int, items: list[Kept]) -> None:
        self.seq, self.at, self.is_added, self._items = seq, at, True, items

    def items(self, at: int) -> list[Kept]:
        """Give what there was of them at a time."""
        return [one for one in self._items if one.is_there(at)]


@dataclass(slots=True)
class _Conversation:
    """A conversation at the provider."""

    entries: list[_Turn | _Added] = field(default_factory=list)
    is_created: bool = False
    """Whether the run began it, so that nothing was in it before."""
    deleted: tuple[int, Seq] | None = None
    """When, and the exchange that deleted it."""
    unplaced: list[tuple[int, Seq]] = field(default_factory=list)
    listed: dict[str, list[ContextPart]] = field(default_factory=dict)
    """What was read of it, by the ids of the items."""


class Provider:
    """Takes the exchanges of a run in their order, and says what the provider keeps."""

    def __init__(self) -> None:
        self._now = 0
        self._changed = 0
        """When something was deleted last."""
        self._times: dict[tuple[Seq, int], int] = {}
        self._calls: dict[tuple[Seq, int], _Turn] = {}
        self._turns: dict[str, _Turn] = {}
        """By the ids of their answers."""
        self._conversations: dict[str, _Conversation] = {}
        self._deleted: dict[str, tuple[int, Seq]] = {}
        """Answers that were deleted: when, and the exchange that did."""
        self._names: dict[str, str] = {}

    def note(self, call: ModelCall) -> None:
        """Take a model call."""
        self._now += 1
        self._times[call.seq, call.part] = self._now
        if call.context.asked.dialect != _DIALECT:
            return
        turn = _Turn(call, self._now, self._names)
        self._calls[call.seq, call.part] = turn
        if call.answer is not None and call.answer.id:
            self._turns[call.answer.id] = turn
        if turn.conversation and not turn.previous:
            self._conversation(turn.conversation).entries.append(turn)

    def see(self, exchange: Exchange) -> None:
        """Take an exchange that is no model call: it may add to what is kept, delete of it, or read it."""
        path, response = exchange.request.path, exchange.response
        if response is not None and not 200 <= response.status < 300:
            return
        if _CONVERSATIONS in path:
            self._now += 1
            self._change(exchange)
            return
        found = _RESPONSE.search(path) if "/responses/" in path else None
        if found is None or found.end() != len(path) or response is None:
            return
        self._now += 1
        id = unquote(found[2])
        if exchange.request.method == "DELETE":
            if not found[3]:
                self._changed = self._now
                self._deleted.setdefault(id, (self._now, exchange.seq))
            return
        turn, tree = self._turns.get(id), _read_response(exchange, found.start() + len(found[1]))
        if turn is not None and as_text(tree.get("status")):
            turn.read_later(tree)

    def held(self, call: ModelCall) -> Held:
        """Give what was kept of that which a call goes on from, when the call was made."""
        at = self._times.get((call.seq, call.part), self._now + 1)
        found, chain = Held(), dict[str, tuple[_Turn, bool]]()
        id, name, by, until = call.context.previous, call.context.conversation, call.seq, at
        is_taken = not call.failed
        while id is not None and id not in chain:
            turn = self._turns.get(id)
            if turn is None:
                found.root, found.broken = id, by
                break
            chain[id] = turn, is_taken
            id, name, by, until = turn.previous, turn.conversation, turn.seq, turn.at
            is_taken = turn.is_added is not False
        if id is None and name is not None:
            self._add_conversation(found, name, until)
        for id, (turn, is_taken) in reversed(chain.items()):
            if turn.is_added is not False:
                found.items += turn.items(at)
            # Who goes on from an answer that failed, and is answered, goes on from something.
            if turn.is_added is None or (turn.is_added is False and is_taken):
                found.doubtful.append(turn.seq)
            when, seq = self._deleted.get(id, (0, turn.seq))
            if 0 < when < at:
                found.deleted[turn.seq] = seq
        return found

    def shared_with(self, call: ModelCall) -> int:
        """Give the last call before one that named the same conversation, whoever made it, or 0."""
        name = call.context.conversation
        entries = self._conversation(name).entries if name is not None else []
        seqs = [one.seq for one in entries if isinstance(one, _Turn) and one.seq < call.seq]
        return seqs[-1] if seqs else 0

    def deleted_answer(self, before: ModelCall, call: ModelCall) -> list[Kept]:
        """Give what the run deleted, before a later call, of the answer to an earlier one."""
        turn = self._calls.get((before.seq, before.part))
        at = self._times.get((call.seq, call.part), self._now + 1)
        return [one for one in turn.answer if not one.is_there(at)] if turn is not None else []

    def only_grew(self, before: ModelCall, call: ModelCall) -> bool:
        """Say whether all that an earlier call had is kept for a later one, that it was asked with it."""
        turn = self._calls.get((before.seq, before.part))
        if turn is None or self._changed > turn.at:
            return False
        if call.context.previous:
            answer = before.answer
            named = answer is not None and answer.id == call.context.previous
            return named and turn.is_added is not False
        name = call.context.conversation
        return name is not None and name == turn.conversation and turn.is_added is True

    def _conversation(self, name: str) -> _Conversation:
        return self._conversations.setdefault(name, _Conversation())

    def _add_conversation(self, found: Held, name: str, at: int) -> None:
        stored = self._conversation(name)
        found.root = "" if stored.is_created else name
        for entry in stored.entries:
            if entry.at >= at:
                continue
            if entry.is_added is None:
                found.doubtful.append(entry.seq)
            elif entry.is_added:
                found.items += entry.items(at)
        found.unplaced += [seq for when, seq in stored.unplaced if when < at]
        if stored.deleted is not None and stored.deleted[0] < at:
            found.deleted = dict.fromkeys((one.seq for one in found.items), stored.deleted[1])

    def _change(self, exchange: Exchange) -> None:
        """Apply what an exchange does to a conversation."""
        request, response = exchange.request, exchange.response
        path, said = request.path, _answer(response)
        found = _ITEMS.search(path)
        if found is None:
            created, whole = _CREATE.search(path), _ONE.search(path)
            id = as_text(said.get("id"))
            is_new = created is not None and created.end() == len(path)
            if request.method == "POST" and is_new and id is not None:
                stored = self._conversation(id)
                stored.is_created = True
                stored.entries.append(self._added(exchange, []))
            is_whole = whole is not None and whole.end() == len(path)
            if request.method == "DELETE" and is_whole and whole is not None and response:
                self._changed = self._now
                self._conversation(unquote(whole[1])).deleted = self._now, exchange.seq
            return
        if found.end() != len(path):
            return
        stored = self._conversation(unquote(found[1]))
        item = unquote(found[2]) if found[2] is not None else None
        if request.method == "POST" and response is not None:
            made = as_objects(as_list(said.get("data")))
            stored.entries.append(self._added(exchange, made))
        elif request.method == "DELETE" and item is not None:
            self._changed = self._now
            if response is None or not self._delete(stored, item):
                stored.unplaced.append((self._now, exchange.seq))
        elif request.method == "GET":
            items = as_objects(as_list(said.get("data"))) if item is None else [said]
            for one in items:
                if (item_id := as_text(one.get("id"))) is not None:
                    stored.listed[item_id] = _read_item(one, exchange.seq, self._names)

    def _added(self, exchange: Exchange, made: list[JsonObject]) -> _Added:
        """Give the items of a request; their ids are in its answer."""
        request = exchange.request
        tree: Json = find_json(request.body) if request.spilled is None else None
        items = as_objects(as_list(as_object(tree).get("items")))
        ids = [as_text(one.get("id")) for one in (made if len(made) == len(items) else items)]
        kept = [
            Kept(exchange.seq, _read_item(one, exchange.seq, self._names), id)
            for id, one in zip(ids, items, strict=True)
        ]
        return _Added(exchange.seq, self._now, kept)

    def _delete(self, stored: _Conversation, item: str) -> bool:
        """Take an item away; say whether it was there."""
        there = [one for entry in stored.entries for one in entry.items(self._now)]
        wanted = [short(one) for one in stored.listed.get(item, ())]
        found = next((one for one in there if one.id == item), None)
        if found is None and wanted:
            alike = (one for one in there if one.id is None)
            found = next((one for one in alike if [*map(short, one.parts)] == wanted), None)
        if found is not None:
            found.until = self._now
        return found is not None


def _is_added(call: ModelCall, tree: JsonObject) -> bool | None:
    """Say whether a call's turn is kept; None where that is not known.

    tree: its response.
    """
    answer, status = call.answer, as_text(tree.get("status"))
    if status == _COMPLETED:
        return True
    if status in _ENDED_WITHOUT or (answer is not None and answer.error is not None):
        return False
    if status is None and answer is not None and answer.complete and answer.choices:
        return True  # what speaks this format and states no status
    return None


def _response_tree(exchange: Exchange | None) -> JsonObject:
    response = exchange.response if exchange is not None else None
    if exchange is None or response is None or response.spilled is not None:
        return {}
    return as_object(read_tree(exchange.request, response))


def _read_response(exchange: Exchange, end: int) -> JsonObject:
    """Read a response that was asked for by its id, perhaps as a stream.

    end: of the path of the call that it answers.
    """
    tree = _answer(exchange.response)
    if tree or exchange.response is None or exchange.response.spilled is not None:
        return tree
    request: HttpRequest = exchange.request
    asked = replace(request, method="POST", target=request.path[:end])
    return as_object(read_tree(asked, exchange.response))


def _read_item(item: JsonObject, seq: Seq, names: dict[str, str]) -> list[ContextPart]:
    system, messages = openai_responses.read_input([item])
    parts = [ContextPart("system", system)] if system else []
    parts += split_items([Item((one,), seq) for one in messages], names)
    for one in parts:
        one.since = seq
    return parts


def _answer(response: Response | None) -> JsonObject:
    whole = response is not None and response.spilled is None
    return as_object(find_json(response.body)) if whole and response is not None else {}
