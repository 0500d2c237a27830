"""A model call that is asked otherwise: another system prompt in every format, and merge patches."""

import json
from typing import Any

import pytest

from playhead.tape.dialects import read_request
from playhead.tape.edits.edit_model_request import change_request, merge, read_system
from playhead.tape.policy.branch import RequestChange
from playhead.tests.support.dialects import make_request

USER = {"role": "user", "content": "hi"}
OPENAI = "https://api.openai.com/v1"
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (f"{OPENAI}/chat/completions", {"messages": [{"role": "system", "content": "old"}, USER]}),
    "chat, in blocks": (f"{OPENAI}/chat/completions", {"messages": [{"role": "developer", "content": [{"type": "text", "text": "old"}]}, USER]}),
    "chat, two": (f"{OPENAI}/chat/completions", {"messages": [{"role": "system", "content": "o"}, {"role": "system", "content": "ld"}, USER]}),
    "responses": (f"{OPENAI}/responses", {"instructions": "old", "input": "hi"}),
    "responses, in its input": (f"{OPENAI}/responses", {"input": [{"role": "developer", "content": "old"}, USER]}),
    "anthropic": ("https://api.anthropic.com/v1/messages", {"system": "old", "messages": [USER], "max_tokens": 9}),
    "anthropic, in blocks": ("https://api.anthropic.com/v1/messages", {"system": [{"type": "text", "text": "old", "cache_control": {"type": "ephemeral"}}], "messages": [USER], "max_tokens": 9}),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/models/g:generateContent", {"systemInstruction": {"parts": [{"text": "old"}]}, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    "bedrock": ("https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", {"system": [{"text": "old"}], "messages": [{"role": "user", "content": [{"text": "hi"}]}]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_system_prompt_is_replaced(name: str) -> None:
    """And nothing else."""
    url, body = FORMATS[name]
    request = make_request(url, {"model": "m", **body})
    changed = change_request(request, RequestChange(system="new"))
    again = make_request(url, changed)
    assert read_system(again) == "new"
    was, now = read_request(request), read_request(again)
    assert was is not None
    assert now is not None
    assert (now.messages, now.model) == (was.messages, was.model)
    if "cache_control" in str(body):
        assert json.loads(changed)["system"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("body", "change", "says"),
    [
        ({"messages": [USER]}, RequestChange(system="new"), "$.messages[0]: the call has no system prompt"),
        ({"messages": [USER]}, RequestChange(patch={"messages": None}), "$.messages: expected an array, found nothing"),
        ({"messages": [USER]}, RequestChange(patch={"messages": {"0": 1}}), "$.messages: expected an array, found an object"),
        ({"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]}, RequestChange(patch={"tools": 7}), "$.tools: expected an array, found an integer"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_read_is_refused_with_its_place(
    body: dict[str, Any], change: RequestChange, says: str
) -> None:
    """Before anything runs."""
    request = make_request(f"{OPENAI}/chat/completions", {"model": "m", **body})
    with pytest.raises(ValueError) as told:  # noqa: PT011  # its text is what is looked at
        change_request(request, change)
    assert str(told.value).startswith(says)


def test_what_is_no_model_call_is_not_changed() -> None:
    """Nobody knows what would be asked."""
    with pytest.raises(ValueError, match="no dialect can read the request"):
        change_request(make_request("https://shop.test/orders", {"a": 1}), RequestChange(patch={}))


@pytest.mark.parametrize(
    ("was", "patch", "now"),
    [
        # The examples of RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_laid_over(was: Any, patch: Any, now: Any) -> None:
    """As RFC 7396 says."""
    assert merge(was, patch) == now
