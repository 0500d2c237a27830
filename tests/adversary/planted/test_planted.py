"""Planted runs are what their truths say: the values are in their places, and nothing else explains them."""

import json
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

from playhead.tests.support.counts import FULL

from . import ALL
from .cost import dollars
from .diff import stripped
from .paths import decoded, first_difference, leaves, resolve, written
from .streams import appears, scalars, text_of
from .wire import Plain, encode

EVERY_DAY = 24


@cache
def some(kind: str) -> list[Plain]:
    """Give all cases of a kind with PLAYHEAD_FULL, else the first ones."""
    generate, count = ALL[kind]
    return generate(count if FULL else min(count, EVERY_DAY))


def each(kind: str) -> pytest.MarkDecorator:
    """Run a test for each case of a kind; cases are made when the first one runs, not when tests are collected."""
    count = ALL[kind][1]
    numbers = range(count if FULL else min(count, EVERY_DAY))
    return pytest.mark.parametrize(("kind", "index"), [(kind, index) for index in numbers])


def runs(case: Plain) -> list[list[Plain]]:
    """Give the runs of a case."""
    if "run" in case:
        return [case["run"]]
    found: list[list[Plain]] = [case["a"], case["b"]] if "a" in case else case["runs"]
    return found


@pytest.mark.parametrize("kind", ALL)
def test_cases_are_the_same_each_time_and_do_not_depend_on_the_count(kind: str) -> None:
    generate, _ = ALL[kind]
    assert generate(6) == generate(6) == generate(9)[:6]
    assert generate(6, seed=1) != generate(6, seed=2)


@pytest.mark.parametrize("kind", ALL)
def test_runs_are_plain_data_in_the_order_of_arrival(kind: str) -> None:
    for case in some(kind):
        assert json.loads(json.dumps(case)) == case, case["id"]
        for run in runs(case):
            assert [one["seq"] for one in run] == list(range(1, len(run) + 1))
            times = [one["started_ms"] for one in run]
            assert times == sorted(times), case["id"]
            assert all(
                isinstance(encode(one[side]), bytes)
                for one in run
                for side in ("request", "response")
            )


def _ended_before(one: Plain, other: Plain) -> bool:
    return bool(one["started_ms"] + one["took_ms"] <= other["started_ms"])


def _asked(exchange: Plain, ask: Plain) -> Any:
    return exchange["url"] if ask["place"] == "url" else resolve(exchange["request"], ask["path"])


@each("blame")
def test_a_planted_value_is_where_the_truth_says_and_nowhere_before(kind: str, index: int) -> None:
    case = some(kind)[index]
    run, truth = case["run"], case["truth"]
    ask, origin = truth["ask"], truth["origin"]
    asked, leaf = run[ask["seq"] - 1], _asked(run[ask["seq"] - 1], ask)
    if ask["whole"]:
        assert (type(leaf), leaf) == (type(ask["value"]), ask["value"])
    else:
        assert str(ask["value"]) in leaf or json.dumps(ask["value"])[1:-1] in leaf
    before = [one for one in run[: ask["seq"] - 1] if _ended_before(one, asked)]
    if origin is None:
        exempt = case["kind"].endswith(("common", "inside"))
        assert exempt or not any(appears(ask["value"], one) for one in before)
        return
    first, side = run[origin["seq"] - 1], origin["side"]
    assert first in before
    assert appears(origin["value"], first, side)
    if origin["path"] is not None:
        found = resolve(first[side], origin["path"])
        assert any(
            leaf == origin["value"] or written(origin["value"]) in str(leaf)
            for leaf in decoded(found)
        )
    for one in run[: origin["seq"] - 1]:
        for form in (ask["value"], origin["value"]):
            assert not any(appears(form, one, side) for side in ("request", "response"))
    if truth["verdict"] == "recorded" and ask["place"] != "url":
        assert written(ask["value"]) == written(origin["value"])


@each("cache")
def test_the_counts_of_a_planted_cache_say_what_the_truth_says(kind: str, index: int) -> None:
    case = some(kind)[index]
    known: dict[str, int] = {}
    for call in case["truth"]["calls"]:
        exchange = case["run"][call["seq"] - 1]
        read, verdict = call["read"], call["verdict"]
        before = known.get(call["lane"], 0)
        assert verdict in call["accept"]
        if verdict == "hit":
            assert read > max(before, 1024), (case["kind"], call)
        elif verdict in ("first", "unknown", "lifetime ran out", "provider"):
            assert not read, (case["kind"], call)
        else:
            assert call["part"], call
            assert (read or 0) <= before or not before, (case["kind"], call)
            if call["path"] is not None:
                resolve(exchange["request"], call["path"])
            assert call["path"] is not None or call["part"] == "model"
        known[call["lane"]] = read or 0
    assert len(case["truth"]["calls"]) == len(case["run"])


def _alike(one: Plain, other: Plain) -> bool:
    """Say whether two exchanges differ in nothing but what differs each time; streams by what they say."""
    return (
        one["url"] == other["url"]
        and all(one[key] == other[key] for key in ("method", "status"))
        and _stable(one["request"]) == _stable(other["request"])
        and _stable(one["response"]) == _stable(other["response"])
    )


def _stable(body: Any) -> Any:
    return text_of(body) if isinstance(body, list) else stripped(body)


@each("diff")
def test_planted_runs_are_alike_until_they_diverge(kind: str, index: int) -> None:
    case = some(kind)[index]
    a, b, first = case["a"], case["b"], case["truth"]["first"]
    if case["kind"] == "volatile in the context":
        assert len(a) == len(b)
        return
    before_a, before_b = (a, b) if first is None else (a[: first["a"] - 1], b[: first["b"] - 1])
    missing = [one for one in before_a if not any(_alike(one, other) for other in b)]
    extra = [one for one in before_b if not any(_alike(one, other) for other in a)]
    assert not missing
    assert not extra
    if first is None:
        assert len(a) == len(b)
        return
    assert not (first["a"] <= len(a) and first["b"] <= len(b)) or not _alike(
        a[first["a"] - 1], b[first["b"] - 1]
    )
    assert first["root"] in case["truth"]["roots"]
    if first["path"] == "status":
        assert a[first["a"] - 1]["status"] != b[first["b"] - 1]["status"]
    elif first["path"]:
        sides = [one[first["side"]] for one in (a[first["a"] - 1], b[first["b"] - 1])]
        assert first_difference(*map(stripped, sides)) == first["path"]


class _Texts:
    """All that the exchanges of a run say."""

    def __init__(self, run: list[Plain]) -> None:
        self._run = run
        self._all = {
            (one["seq"], side): "\n".join(map(str, scalars(one, side)))
            for one in run
            for side in ("request", "response")
        }

    def has(self, item: Plain, seq: int, side: str = "request") -> bool:
        """Say whether one side of an exchange has a part."""
        if item["kind"] == "tool":
            return f'"{item["text"]}"' in json.dumps(self._run[seq - 1]["request"].get("tools"))
        text = item["text"]
        return (json.loads(text)["reason"] if text[0] == "{" else text) in self._all[seq, side]

    def first(self, item: Plain) -> int:
        """Give the first exchange that has a part, other than that of the tool."""
        seqs = (one["seq"] for one in self._run if one["seq"] not in item["origins"])
        return next(
            int(seq) for seq in seqs if self.has(item, seq) or self.has(item, seq, "response")
        )


@each("context")
def test_what_a_planted_compaction_drops_was_there_and_is_gone(kind: str, index: int) -> None:
    case = some(kind)[index]
    assert case["truth"]["compactions"]
    texts = _Texts(case["run"])
    for found in case["truth"]["compactions"]:
        asked = found["summary"] or found["before"]
        assert [item for item in found["items"] if not item["optional"]]
        for item in found["items"]:
            assert texts.has(item, asked)
            assert item["optional"] or texts.has(item, found["before"]), item
            assert not texts.has(item, found["seq"]), item
            assert texts.first(item) == item["origin"], item
            for seq in item["origins"]:
                assert texts.has(item, seq, "response")
        for text in found["kept"]:
            assert texts.has({"kind": "", "text": text}, found["seq"])


def _caused(asked: Plain, fetched: Plain) -> bool:
    return fetched["url"].rsplit("+", 1)[-1] in text_of(asked["response"])


@each("lanes")
def test_each_model_call_is_of_a_lane_whose_conversation_grows(kind: str, index: int) -> None:
    case = some(kind)[index]
    calls = case["truth"]["calls"]
    asked = [one["seq"] for one in case["run"] if one["method"] == "POST"]
    assert [one["seq"] for one in calls] == asked
    names = {one["lane"] for one in calls}
    ended: dict[str, int] = {}
    for call in calls:
        exchange = case["run"][call["seq"] - 1]
        assert call["parent"] in (*names, None)
        assert call["parent"] in call["parents"]
        if call["aside"]:
            assert call["lane"] is None
            continue
        assert call["parent"] is None or call["parent"] in ended, call
        assert ended.get(call["lane"], 0) <= exchange["started_ms"], case["kind"]
        ended[call["lane"]] = exchange["started_ms"] + exchange["took_ms"]
    for call in calls:
        exchange = case["run"][call["seq"] - 1]
        after = case["run"][call["seq"] : call["seq"] + 1]
        assert all(
            _ended_before(exchange, one)
            for one in after
            if one["method"] == "GET" and _caused(exchange, one)
        )
    assert len(names - {None}) >= 2


def _apply(state: Any, fields: list[Plain]) -> Any:
    for field in fields:
        if field["path"] == "$":
            return deepcopy(field["new"].get("value"))
        *way, key = field["path"].split(".")[1:]
        holder = state
        for step in way:
            holder = holder[step]
        assert holder.get(key) == field["old"].get("value")
        if "value" in field["new"]:
            holder[key] = deepcopy(field["new"]["value"])
        else:
            del holder[key]
    return state


@each("history")
def test_the_changes_of_a_history_explain_each_read(kind: str, index: int) -> None:
    case = some(kind)[index]
    truth = case["truth"]
    changes = {(one["seen"]["run"], one["seen"]["seq"]): one for one in truth["changes"]}
    assert len(changes) == len(truth["changes"])
    late = {(one["run"], one["seq"]) for one in truth["old_reads"]}
    state: Any = None
    order = [((index, one["seq"]), one) for index, run in enumerate(case["runs"]) for one in run]
    for place, exchange in sorted(order, key=lambda one: int(one[1]["started_ms"])):
        change = changes.pop(place, None)
        if change:
            assert change["method"] in (exchange["method"], None)
            state = _apply(state, change["fields"])
        if exchange["url"] == case["url"] and exchange["method"] == "GET":
            read = exchange["response"] if exchange["status"] == 200 else None
            assert (read == state) is (place not in late)
    assert not changes
    for one in truth["stale"]:
        assert case["runs"][one["run"]][one["read"]["seq"] - 1]["status"] == 200
        assert one["lost"]


@pytest.mark.skipif(not FULL, reason="the clients take seconds to import: PLAYHEAD_FULL=1")
def test_answers_are_what_the_providers_clients_take() -> None:
    messages, chats, responses = (
        pytest.importorskip(name)
        for name in ("anthropic.types", "openai.types.chat", "openai.types.responses")
    )
    readers = {
        "api.anthropic.com/v1/messages": (messages.Message, messages.RawMessageStreamEvent),
        "/chat/completions": (chats.ChatCompletion, chats.ChatCompletionChunk),
        "/v1/responses": (responses.Response, responses.ResponseStreamEvent),
    }
    adapters = {place: [TypeAdapter(one) for one in both] for place, both in readers.items()}
    for exchange in (one for kind in ("blame", "lanes", "cost") for one in _exchanges(kind)):
        found = [both for part, both in adapters.items() if exchange["url"].endswith(part)]
        body = exchange["response"]
        if not found or exchange["status"] != 200 or not body:
            continue
        whole, event = found[0]
        if not isinstance(body, list):
            whole.validate_python({"usage": None} | body)
        for one in body if isinstance(body, list) else ():
            assert one["data"] == "[DONE]" or event.validate_python(one["data"])


def _exchanges(kind: str) -> list[Plain]:
    return [one for case in some(kind)[:12] for one in case["run"]]


def _numbers(body: Any) -> dict[str, int]:
    """Give the last count of tokens of each name that an answer states."""
    found: dict[str, int] = {}
    for event in body if isinstance(body, list) else [{"data": body}]:
        for path, leaf in leaves(event["data"]):
            if "usage" in path and isinstance(leaf, int):
                found[path.rsplit(".", 1)[-1]] = leaf
    return found


@each("cost")
def test_a_bill_has_what_the_answers_state(kind: str, index: int) -> None:
    case = some(kind)[index]
    requests = case["truth"]["requests"]
    assert [one["seq"] for one in requests] == [one["seq"] for one in case["run"]]
    assert case["truth"]["sent"] == sum("refused" not in one for one in case["run"])
    for one in requests:
        exchange, stated = (
            case["run"][one["seq"] - 1],
            _numbers(case["run"][one["seq"] - 1]["response"]),
        )
        if one["model"] is None or exchange["status"] != 200:
            assert not one["input"] + one["output"]
            continue
        written = stated.get("cache_creation_input_tokens", stated.get("cache_write_tokens", 0))
        read = stated.get(
            "cache_read_input_tokens",
            stated.get("cached_tokens", stated.get("cachedContentTokenCount", 0)),
        )
        whole = stated.get(
            "prompt_tokens", stated.get("promptTokenCount", stated.get("input_tokens", 0))
        )
        if one["provider"] == "anthropic":
            whole += read + written
        output = stated.get(
            "completion_tokens", stated.get("output_tokens", stated.get("candidatesTokenCount", 0))
        )
        output += stated.get("thoughtsTokenCount", 0)
        found = {"input": whole, "read": read, "written": written, "output": output}
        assert found == {key: one[key] for key in found}, one
        assert one["at_least"] is ("cut" in exchange or not stated)


def test_dollars_are_those_of_genai_prices() -> None:
    pytest.importorskip("genai_prices")
    priced = [(one, dollars(one)) for case in some("cost") for one in case["truth"]["requests"]]
    known = {one["model"]: price for one, price in priced if price}
    assert {price for one, price in priced if one["provider"] == "acme" and one["input"]} == {None}
    assert len(known) >= 7
    assert all(
        price is not None and price >= 0 for one, price in priced if one["provider"] != "acme"
    )
