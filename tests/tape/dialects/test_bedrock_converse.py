"""Bedrock: Converse and InvokeModel, in one piece and in AWS frames."""

from typing import Any

import pytest

from playhead.tape.dialects import (
    Finish,
    Image,
    InferenceResponse,
    Message,
    Other,
    Part,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    read_request,
    read_response,
)
from playhead.tape.exchange import Response
from playhead.tests.support.dialects import (
    chunk_frame,
    make_frame,
    make_frames,
    make_request,
    make_response,
)

HOST = "https://bedrock-runtime.eu-west-1.amazonaws.com/model"
NOVA = f"{HOST}/amazon.nova-lite-v1%3A0"
ASKED = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def answer(response: Response, call: str = "converse") -> InferenceResponse:
    """Read a response to it."""
    found = read_response(make_request(f"{NOVA}/{call}", ASKED), response)
    assert found is not None
    return found


# ---- Converse ----------------------------------------------------------------------------------------


def test_a_conversation_is_read() -> None:
    """Every parameter that has a place in the view; the model stands in the path."""
    found = read_request(
        make_request(
            f"{NOVA}/converse-stream",
            {
                **ASKED,
                "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
                "inferenceConfig": {
                    "maxTokens": 9,
                    "temperature": 0.5,
                    "topP": 0.25,
                    "stopSequences": ["END"],
                },
                "additionalModelRequestFields": {"top_k": 3, "thinking": {"type": "enabled"}},
                "toolConfig": {
                    "tools": [
                        {
                            "toolSpec": {
                                "name": "f",
                                "description": "d",
                                "inputSchema": {"json": {"type": "object"}},
                            }
                        },
                        {"cachePoint": {"type": "default"}},
                    ],
                    "toolChoice": {"auto": {}},
                },
            },
        )
    )
    assert found is not None
    assert (found.dialect, found.model) == ("bedrock-converse", "amazon.nova-lite-v1:0")
    assert (found.streamed, found.system) == (True, "Be brief.")
    assert found.messages == (Message("user", (Text("Hi"),)),)
    assert found.sampling == Sampling(
        temperature=0.5,
        top_p=0.25,
        top_k=3,
        max_tokens=9,
        stop=("END",),
        thinking={"type": "enabled"},
        tool_choice={"auto": {}},
    )
    assert found.tools[0] == Tool("f", "d", {"type": "object"})


def test_a_model_may_be_an_arn() -> None:
    """Percent-encoded, with slashes in it."""
    arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.model-v1%3A0"
    found = read_request(make_request(f"{HOST}/{arn}/converse", ASKED))
    assert found is not None
    assert found.model == "arn:aws:bedrock:us-east-1:1:inference-profile/us.model-v1:0"


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"text": "a"}, Text("a")),
        ({"guardContent": {"text": {"text": "a", "qualifiers": ["query"]}}}, Text("a")),
        (
            {"image": {"format": "png", "source": {"bytes": "aGk="}}},
            Image("image/png", None, "aGk="),
        ),
        (
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x"}}}},
            Image("image/png", "s3://x"),
        ),
        (
            {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
            ToolCall("t1", "f", {"a": 1}),
        ),
        (
            {"toolResult": {"toolUseId": "t1", "content": [{"text": "a"}, {"json": {"b": 2}}]}},
            ToolResult("t1", (Text("a"), Other("json", {"b": 2}))),
        ),
        (
            {"toolResult": {"toolUseId": "t1", "content": [], "status": "error"}},
            ToolResult("t1", (), failed=True),
        ),
        (
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            Thinking("hm", "s"),
        ),
        ({"reasoningContent": {"redactedContent": "xx"}}, Thinking("", "xx")),
        (
            {"cachePoint": {"type": "default"}},
            Other("cachePoint", {"cachePoint": {"type": "default"}}),
        ),
    ],
)
def test_a_block_is_read(block: dict[str, Any], part: Part) -> None:
    """Into a part of the same kind as everybody's."""
    body = {"messages": [{"role": "user", "content": [block]}]}
    found = read_request(make_request(f"{NOVA}/converse", body))
    assert found is not None
    assert found.messages[0].parts == (part,)


def test_an_answer_is_read() -> None:
    """With cached tokens beside the input."""
    usage = {
        "inputTokens": 3,
        "outputTokens": 5,
        "totalTokens": 108,
        "cacheReadInputTokens": 90,
        "cacheWriteInputTokens": 10,
    }
    message = {"role": "assistant", "content": [{"text": "Hello"}]}
    body = {"output": {"message": message}, "stopReason": "guardrail_intervened", "usage": usage}
    found = answer(make_response(body))
    assert (found.text, found.finish) == ("Hello", Finish.FILTERED)
    assert found.usage == Usage(3, 5, 90, 10, None, 108, cached_in_input=False)


EVENTS = [
    ("messageStart", {"role": "assistant", "p": "ab"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
    (
        "contentBlockDelta",
        {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}},
    ),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Hel"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "lo"}}),
    (
        "contentBlockStart",
        {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a"'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ": 1}"}}}),
    (
        "contentBlockStart",
        {"contentBlockIndex": 3, "start": {"toolUse": {"toolUseId": "t2", "name": "g"}}},
    ),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
]
FRAMES = [make_frame(payload, event_type=name) for name, payload in EVENTS]
PARTS = (
    Thinking("hm", "s"),
    Text("Hello"),
    ToolCall("t1", "f", {"a": 1}, '{"a": 1}'),
    ToolCall("t2", "g", {}),
)


def test_frames_become_one_answer() -> None:
    """Thoughts, text, calls in parallel, usage from the end."""
    found = answer(make_frames(*FRAMES), "converse-stream")
    assert found.message is not None
    assert found.message.parts == PARTS
    assert found.usage == Usage(3, 5, total_tokens=8, cached_in_input=False)
    assert (found.finish, found.complete, found.first_token_us) == (Finish.TOOL_CALLS, True, 2000)


def test_an_exception_in_a_stream_is_an_error() -> None:
    """After what was said; its kind stands in the frame's head."""
    failed = make_frame(
        {"message": "Too many requests"},
        message_type="exception",
        exception_type="throttlingException",
    )
    found = answer(make_frames(*FRAMES[:6], failed), "converse-stream")
    assert found.text == "Hello"
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("throttlingException", "Too many requests")
    assert not found.complete


def test_a_broken_frame_ends_what_can_be_read() -> None:
    """And the stream is not complete, whatever its framing says."""
    broken = b"\x7f" + FRAMES[6][1:]
    found = answer(make_frames(*FRAMES[:6], broken, *FRAMES[7:]), "converse-stream")
    assert (found.text, found.complete) == ("Hello", False)


def test_an_error_is_noted() -> None:
    """Its kind stands in a header field."""
    headers = {
        "content-type": "application/json",
        "x-amzn-errortype": "ValidationException:http://x",
    }
    found = answer(make_response({"message": "No such model"}, 400, headers))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("ValidationException", "No such model")


# ---- InvokeModel -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "sampling", "text"),
    [
        # Anthropic
        (
            {
                "anthropic_version": "bedrock-2023-05-31",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "Hi"}],
            },
            Sampling(max_tokens=9),
            "Hi",
        ),
        # Nova
        (
            {
                "schemaVersion": "messages-v1",
                "inferenceConfig": {"max_new_tokens": 9, "topK": 3},
                **ASKED,
            },
            Sampling(max_tokens=9, top_k=3),
            "Hi",
        ),
        # Mistral's, OpenAI's and other chats
        (
            {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
            Sampling(max_tokens=9),
            "Hi",
        ),
        # Titan
        (
            {
                "inputText": "Hi",
                "textGenerationConfig": {"maxTokenCount": 9, "topP": 1, "stopSequences": ["|"]},
            },
            Sampling(max_tokens=9, top_p=1, stop=("|",)),
            "Hi",
        ),
        # Llama
        (
            {"prompt": "Hi", "max_gen_len": 9, "temperature": 0.5},
            Sampling(max_tokens=9, temperature=0.5),
            "Hi",
        ),
        # Cohere's texts, and Command R
        (
            {"prompt": "Hi", "max_tokens": 9, "p": 0.5, "k": 3},
            Sampling(max_tokens=9, top_p=0.5, top_k=3),
            "Hi",
        ),
        ({"message": "Hi", "max_tokens": 9}, Sampling(max_tokens=9), "Hi"),
        # AI21
        ({"prompt": "Hi", "maxTokens": 9, "topP": 1}, Sampling(max_tokens=9, top_p=1), "Hi"),
    ],
)
def test_each_makers_request_is_read(body: dict[str, Any], sampling: Sampling, text: str) -> None:
    """By its shape; the model stands in the path."""
    found = read_request(make_request(f"{HOST}/some.model/invoke", body))
    assert found is not None
    assert (found.dialect, found.model) == ("bedrock-invoke", "some.model")
    assert found.sampling == sampling
    assert [message.text for message in found.messages] == [text]


@pytest.mark.parametrize(
    ("body", "finish", "usage"),
    [
        # Anthropic
        (
            {
                "type": "message",
                "content": [{"type": "text", "text": "Hello"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 3, "output_tokens": 5},
            },
            Finish.STOP,
            Usage(3, 5, cached_in_input=False),
        ),
        # Nova
        (
            {
                "output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokenCount": 0},
            },
            Finish.STOP,
            Usage(3, 5, 0, cached_in_input=False),
        ),
        # chats
        (
            {
                "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 5},
            },
            Finish.STOP,
            Usage(3, 5),
        ),
        # Titan, which writes whole numbers with a point
        (
            {
                "inputTextTokenCount": 3.0,
                "results": [{"tokenCount": 5, "outputText": "Hello", "completionReason": "FINISH"}],
            },
            Finish.STOP,
            Usage(3, 5),
        ),
        # Llama
        (
            {
                "generation": "Hello",
                "prompt_token_count": 3,
                "generation_token_count": 5,
                "stop_reason": "length",
            },
            Finish.LENGTH,
            Usage(3, 5),
        ),
        # Mistral's and Cohere's texts, AI21, Anthropic before messages
        ({"outputs": [{"text": "Hello", "stop_reason": "stop"}]}, Finish.STOP, None),
        ({"generations": [{"text": "Hello", "finish_reason": "COMPLETE"}]}, Finish.STOP, None),
        (
            {"completions": [{"data": {"text": "Hello"}, "finishReason": {"reason": "length"}}]},
            Finish.LENGTH,
            None,
        ),
        ({"completion": "Hello", "stop_reason": "stop_sequence"}, Finish.STOP, None),
        # Command R
        ({"text": "Hello", "finish_reason": "MAX_TOKENS"}, Finish.LENGTH, None),
        # a guardrail in the place of the model
        (
            {"outputText": "Hello", "amazon-bedrock-guardrailAction": "INTERVENED"},
            Finish.FILTERED,
            None,
        ),
    ],
)
def test_each_makers_answer_is_read(
    body: dict[str, Any], finish: Finish, usage: Usage | None
) -> None:
    """By its shape."""
    found = answer(make_response(body), "invoke")
    assert (found.text, found.finish, found.usage) == ("Hello", finish, usage)


def test_usage_stands_in_the_head_where_the_body_has_none() -> None:
    """What the body states counts more."""
    headers = {
        "content-type": "application/json",
        "X-Amzn-Bedrock-Input-Token-Count": "30",
        "X-Amzn-Bedrock-Output-Token-Count": "5",
    }
    text = {"outputs": [{"text": "Hello", "stop_reason": "stop"}]}
    assert answer(make_response(text, headers=headers), "invoke").usage == Usage(30, 5)
    llama = {"generation": "Hello", "prompt_token_count": 3}
    assert answer(make_response(llama, headers=headers), "invoke").usage == Usage(3, 5)


def test_embeddings_have_usage_alone() -> None:
    """Their vectors are left in the body."""
    found = answer(make_response({"embedding": [0.1], "inputTextTokenCount": 4}), "invoke")
    assert (found.choices, found.usage) == ((), Usage(4))


METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3, "outputTokenCount": 5}}


@pytest.mark.parametrize(
    "events",
    [
        # Anthropic
        [
            {"type": "message_start", "message": {"role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hel"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "lo"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop", **METRICS},
        ],
        # Nova
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"text": "Hel"}, "contentBlockIndex": 0}},
            {"contentBlockDelta": {"delta": {"text": "lo"}, "contentBlockIndex": 1}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": {"inputTokens": 3}}, **METRICS},
        ],
        # chats
        [
            {"choices": [{"delta": {"content": "Hel"}}]},
            {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
            METRICS,
        ],
        # Llama
        [
            {"generation": "Hel", "prompt_token_count": 3, "stop_reason": None},
            {"generation": "lo", "generation_token_count": 5, "stop_reason": "stop", **METRICS},
        ],
        # Mistral's texts
        [
            {"outputs": [{"text": "Hel", "stop_reason": None}]},
            {"outputs": [{"text": "lo", "stop_reason": "stop"}], **METRICS},
        ],
        # Cohere's texts
        [
            {"text": "Hel", "is_finished": False},
            {"text": "lo", "is_finished": False},
            {"is_finished": True, "finish_reason": "COMPLETE", **METRICS},
        ],
        # Titan
        [
            {"outputText": "Hel", "index": 0, "inputTextTokenCount": 3},
            {"outputText": "lo", "completionReason": "FINISH", **METRICS},
        ],
    ],
)
def test_each_makers_stream_is_read(events: list[dict[str, Any]]) -> None:
    """By the shape of its first event; Bedrock's own figures stand in the last."""
    found = answer(make_frames(*map(chunk_frame, events)), "invoke-with-response-stream")
    assert (found.text, found.finish, found.complete) == ("Hello", Finish.STOP, True)
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (3, 5)
    assert found.first_token_us is not None


def test_a_frame_that_holds_no_json_is_unknown() -> None:
    """Nobody's stream."""
    frames = make_frames(make_frame({"bytes": "!!!"}, event_type="chunk"))
    request = make_request(f"{NOVA}/invoke-with-response-stream", ASKED)
    assert read_response(request, frames) is None
