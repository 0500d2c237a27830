"""What a model call sends beside its messages counts: known to its dialect or not."""

import json
from typing import Any

import pytest

from playhead.tape.exchange import Exchange
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    result,
    text,
    use,
    user,
)
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.diff.row import Change

HI = [{"role": "user", "content": "hi"}]


def first_change(first: list[Exchange], second: list[Exchange]) -> Change | None:
    divergence = compare_acts(*(read_acts(InMemory(one)) for one in (first, second))).divergence
    return divergence.row.change if divergence is not None else None


def chat(**more: Any) -> list[Exchange]:
    """A call of OpenAI's chat completions."""
    tape = Tape("chat")
    tape.model(
        make_request(
            "https://api.openai.com/v1/chat/completions", {"model": "gpt-4o", "messages": HI} | more
        ),
        make_response(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": "gpt-4o",
                "choices": [
                    {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
                ],
            }
        ),
    )
    return tape.exchanges


def responses(*asked: dict[str, Any], ids: str = "a") -> list[Exchange]:
    """Calls of OpenAI's responses; `{}` in a value is the id of the answer before."""
    tape = Tape("responses")
    last = ""
    for number, more in enumerate(asked):
        body = {"model": "gpt-5", "input": f"hi {number}"} | more
        body = json.loads(json.dumps(body).replace("{last}", last))
        last = f"resp_{ids}{number}00000001"
        answer = {"id": last, "object": "response", "status": "completed", "model": "gpt-5"}
        said = {"type": "output_text", "text": "x"}
        answer["output"] = [{"type": "message", "role": "assistant", "content": [said]}]  # type: ignore[assignment]
        tape.model(make_request("https://api.openai.com/v1/responses", body), make_response(answer))
    return tape.exchanges


def messages(*content: Any, **more: Any) -> list[Exchange]:
    """A call of Anthropic's messages."""
    tape = Tape("messages")
    asked = [{"role": "user", "content": list(content) or "hi"}]
    tape.model(anthropic(asked, **more), anthropic_stream(text("x")))
    return tape.exchanges


EVIL = [{"type": "url", "url": "https://evil.test/mcp", "name": "a"}]
SHOP = [{"type": "url", "url": "https://shop.test/mcp", "name": "a"}]
STRICT = {"type": "function", "function": {"name": "f", "parameters": {}}}
DIFFERENT: dict[str, tuple[list[Exchange], list[Exchange]]] = {
    **{
        name: (chat(**{name: one}), chat(**({name: other} if other is not None else {})))
        for name, one, other in (
            ("frequency_penalty", 0, 2),
            ("logit_bias", {"1": -100}, {"1": 100}),
            ("n", 1, 3),
            ("service_tier", "flex", None),
            ("web_search_options", {}, None),
            ("modalities", ["text"], ["text", "audio"]),
            ("verbosity", "low", "high"),
            ("nobody_knows_this", 1, True),
            ("tools", [STRICT], [{**STRICT, "function": {**STRICT["function"], "strict": True}}]),  # type: ignore[dict-item]
        )
    },
    **{
        f"{name} {one}": (responses({name: one}), responses({name: other}))
        for name, one, other in (
            ("prompt", {"id": "pmpt_1", "version": "1"}, {"id": "pmpt_1", "version": "2"}),
            ("conversation", "conv_ana_000001", "conv_bob_000002"),
            ("conversation", "conv_" + "a1" * 24, "conv_" + "b2" * 24),
            ("previous_response_id", "resp_" + "a1" * 24, "resp_" + "b2" * 24),
            ("max_tool_calls", 1, 2),
            ("store", True, False),
        )
    },
    "mcp_servers": (messages(mcp_servers=SHOP), messages(mcp_servers=EVIL)),
    "speed": (messages(speed="fast"), messages()),
    "context_management": (messages(context_management={"edits": []}), messages()),
    "a failed result": (
        messages(result("toolu_1", "x", is_error=True)),
        messages(result("toolu_1", "x")),
    ),
    "an image in a result": tuple(  # type: ignore[dict-item]
        messages({"type": "tool_result", "tool_use_id": "toolu_1", "content": [
            {"type": "text", "text": "seen"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]})
        for data in ("AAAA", "BBBB")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_every_member_of_a_request_counts(name: str) -> None:
    """Whether a dialect reads it or not, another value of a member is another question."""
    one, other = DIFFERENT[name]
    assert first_change(one, other) is Change.ASKED
    assert first_change(one, one) is None


CACHED = text("hi") | {"cache_control": {"type": "ephemeral"}}
SAME: dict[str, tuple[list[Exchange], list[Exchange]]] = {
    "stream": (chat(stream=False), chat(user="u2")),
    "who asks": (chat(metadata={"job": "1"}, user="u1"), chat(metadata={"job": "2"}, user="u2")),
    "a cache mark": (messages(text("hi")), messages(CACHED)),
    "a key of a cache": (chat(prompt_cache_key="a"), chat(prompt_cache_key="b")),
    "the answer before": tuple(  # type: ignore[dict-item]
        responses({}, {"previous_response_id": "{last}"}, ids=ids) for ids in "ab"
    ),
    "a container": (messages(container="container_011a2b3c4d"), messages(container="container_022b3c4d5e")),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_changes_nothing_about_the_question_may_vary(name: str) -> None:
    """How the answer comes, for whom, what is cached, and ids that earlier answers gave."""
    assert first_change(*SAME[name]) is None


def test_another_earlier_answer_is_another_question() -> None:
    """Who goes on from the first answer and not from the last asks something else."""
    last = {"previous_response_id": "{last}"}
    first = {"previous_response_id": "resp_b000000001"}
    one, other = responses({}, last, last), responses({}, last, first, ids="b")
    assert first_change(one, other) is Change.ASKED


def test_what_the_model_said_is_compared_as_its_answer() -> None:
    """Signatures that the agent sends back are made anew; nothing else of an answer is in a request alone."""

    def run(ids: str) -> list[Exchange]:
        tape = Tape("thinks")
        call = use(f"toolu_{ids}10000", "Get")
        thought = {"type": "thinking", "thinking": "hm", "signature": ids * 30}
        asked = [user("Go.")]
        tape.model(anthropic(asked), anthropic_stream(thought, call, stop="tool_use"))
        asked = [*asked, assistant(thought, call), user(result(call["id"], "ok"))]
        tape.model(anthropic(asked), anthropic_stream(text("Done.")))
        return tape.exchanges

    assert first_change(run("a"), run("b")) is None
