"""Gemini: at its own API, on Vertex, behind its command line; names and words written in several ways."""

import json
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
from playhead.tape.dialects.common.inference import ModeTokens
from playhead.tape.exchange import Response
from playhead.tests.support.dialects import cut, make_request, make_response, make_stream

PLACE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro"
URL = f"{PLACE}:generateContent"
STREAM = f"{PLACE}:streamGenerateContent?alt=sse"
ASKED = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def answer(response: Response, url: str = URL) -> InferenceResponse:
    """Read a response to it."""
    found = read_response(make_request(url, ASKED), response)
    assert found is not None
    return found


def said(*parts: dict[str, Any], finish: object = "STOP", **more: object) -> dict[str, Any]:
    """Give an answer as it is sent at once, and as a chunk of a stream."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "g-3", "responseId": "r1", **more}


_CAMEL = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.25,
        "topK": 3,
        "maxOutputTokens": 9,
        "seed": 7,
        "stopSequences": ["END"],
        "responseMimeType": "application/json",
        "thinkingConfig": {"thinkingBudget": 0},
    },
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    "tools": [
        {"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "x"}}]},
        {"googleSearch": {}},
    ],
}
_SNAKE = {
    "system_instruction": {"parts": {"text": "Be brief."}},
    "generation_config": {
        "temperature": 0.5,
        "top_p": 0.25,
        "top_k": 3,
        "max_output_tokens": 9,
        "seed": 7,
        "stop_sequences": ["END"],
        "response_mime_type": "application/json",
        "thinking_config": {"thinkingBudget": 0},
    },
    "tool_config": {"functionCallingConfig": {"mode": "ANY"}},
    "tools": [
        {
            "function_declarations": [
                {"name": "f", "description": "d", "parameters_json_schema": {"type": "x"}}
            ]
        },
        {"googleSearch": {}},
    ],
}


@pytest.mark.parametrize("config", [_CAMEL, _SNAKE], ids=["camel", "snake"])
def test_a_request_is_read_however_its_names_are_written(config: dict[str, Any]) -> None:
    """The API takes both."""
    found = read_request(make_request(STREAM, {**ASKED, **config}))
    assert found is not None
    assert (found.model, found.streamed, found.system) == ("gemini-3-pro", True, "Be brief.")
    assert found.messages == (Message("user", (Text("Hi"),)),)
    assert found.sampling == Sampling(
        temperature=0.5,
        top_p=0.25,
        top_k=3,
        max_tokens=9,
        seed=7,
        stop=("END",),
        response_format="application/json",
        thinking={"thinkingBudget": 0},
        tool_choice={"functionCallingConfig": {"mode": "ANY"}},
    )
    assert found.tools == (
        Tool("f", "d", {"type": "x"}),
        Tool("googleSearch", kind="googleSearch"),
    )


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ({"text": "a"}, Text("a")),
        ({"text": "a", "thought": True, "thoughtSignature": "s"}, Thinking("a", "s")),
        (
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            Image("image/png", None, "aGk="),
        ),
        ({"inline_data": {"mime_type": "image/png", "data": "aA"}}, Image("image/png", None, "aA")),
        (
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://x"}},
            Image("image/png", "gs://x"),
        ),
        (
            {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
            Other("inlineData", {"mimeType": "audio/wav", "data": "aGk="}),
        ),
        ({"functionCall": {"name": "f", "args": {"a": 1}}}, ToolCall(None, "f", {"a": 1})),
        ({"functionCall": {"id": "1", "name": "f"}}, ToolCall("1", "f", {})),
        (
            {"functionResponse": {"name": "f", "response": {"b": 2}}},
            ToolResult(None, (Other("json", {"b": 2}),), "f"),
        ),
        (
            {"executableCode": {"code": "1"}},
            Other("executableCode", {"executableCode": {"code": "1"}}),
        ),
    ],
)
def test_a_part_is_read(item: dict[str, Any], part: Part) -> None:
    """Into one of the same kind as everybody's."""
    found = read_request(make_request(URL, {"contents": [{"role": "model", "parts": [item]}]}))
    assert found is not None
    assert found.messages == (Message("assistant", (part,)),)


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (URL, {}, "gemini-3-pro"),
        (
            "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/"
            "models/gemini-3:generateContent",
            {},
            "gemini-3",
        ),
        (
            "https://aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/77:generateContent",
            {},
            "endpoints/77",
        ),
    ],
)
def test_the_model_stands_in_the_path(url: str, body: dict[str, Any], model: str) -> None:
    """On Vertex one's own has an endpoint."""
    found = read_request(make_request(url, {**ASKED, **body}))
    assert found is not None
    assert found.model == model


def test_what_the_command_line_wraps_is_unwrapped() -> None:
    """Its service has one more object around request and answer, and no model in the path."""
    request = make_request(
        "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse",
        {"model": "gemini-3-pro", "project": "p", "request": ASKED},
    )
    asked = read_request(request)
    assert asked is not None
    assert (asked.model, asked.messages[0].text) == ("gemini-3-pro", "Hi")
    chunks = [
        {"response": said({"text": text}, finish=end)} for text, end in (("H", None), ("i", "STOP"))
    ]
    found = read_response(request, make_stream(*chunks))
    assert found is not None
    assert (found.text, found.model, found.complete) == ("Hi", "g-3", True)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        ("SAFETY", Finish.FILTERED),
        ("PROHIBITED_CONTENT", Finish.FILTERED),
        ("MALFORMED_FUNCTION_CALL", Finish.FAILED),
        ("OTHER", Finish.OTHER),
        (1, Finish.STOP),
        (2, Finish.LENGTH),
        (3, Finish.FILTERED),
    ],
)
def test_a_finish_reason_is_normalised(reason: object, finish: Finish) -> None:
    """Also where words are numbers."""
    found = answer(make_response(said({"text": "a"}, finish=reason)))
    assert (found.finish, found.finish_reason) == (finish, str(reason))


def test_a_prompt_that_was_blocked_has_no_candidates() -> None:
    """The answer says why."""
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    for response in (make_response(body), make_stream(body)):
        found = answer(response)
        assert (found.finish, found.finish_reason, found.text) == (Finish.FILTERED, "SAFETY", "")
        assert found.usage == Usage(4, reasoning_in_output=False)
        assert found.complete


def test_usage_is_as_stated() -> None:
    """With cached and thinking tokens."""
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 80,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 135,
    }
    found = answer(make_response(said({"text": "a"}, usageMetadata=usage)))
    assert found.usage == Usage(100, 5, 80, None, 30, 135, reasoning_in_output=False)


def test_audio_and_results_of_own_tools_are_counted() -> None:
    """What the provider's tools gave is input beside the prompt; audio has a price of its own."""
    usage = {
        "promptTokenCount": 1000,
        "toolUsePromptTokenCount": 500,
        "candidatesTokenCount": 20,
        "promptTokensDetails": [
            {"modality": "AUDIO", "tokenCount": 900},
            {"modality": "TEXT", "tokenCount": 100},
        ],
        "toolUsePromptTokensDetails": [{"modality": "AUDIO", "tokenCount": 50}],
        "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 7}],
        "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 3}],
    }
    found = answer(make_response(said({"text": "a"}, usageMetadata=usage)))
    assert found.usage == Usage(
        1500,
        20,
        reasoning_in_output=False,
        modes=(ModeTokens("audio", 950, 7, 3),),
    )


# ---- streams -----------------------------------------------------------------------------------------

CHUNKS = [
    said({"text": "h", "thought": True}, finish=None, usageMetadata={"promptTokenCount": 9}),
    said({"text": "m", "thought": True}, finish=None),
    said({"text": "Hel"}, finish=None),
    said({"text": "lo"}, {"functionCall": {"name": "f", "args": {"a": 1}}}, finish=None),
    said(
        {"functionCall": {"name": "g", "args": {}}},
        usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16},
    ),
]
PARTS = (Thinking("hm"), Text("Hello"), ToolCall(None, "f", {"a": 1}), ToolCall(None, "g", {}))


def test_chunks_become_one_answer() -> None:
    """Text of the same kind is joined, calls are not."""
    found = answer(make_stream(*CHUNKS), STREAM)
    assert found.message is not None
    assert found.message.parts == PARTS
    assert found.usage == Usage(9, 7, total_tokens=16, reasoning_in_output=False)
    assert (found.finish, found.finish_reason) == (Finish.TOOL_CALLS, "STOP")
    assert (found.streamed, found.complete, found.first_token_us) == (True, True, 1000)


def test_a_stream_may_be_an_array() -> None:
    """Without `alt=sse` it is one, sent member by member."""
    texts = [json.dumps(chunk, indent=2).encode() for chunk in CHUNKS]
    pieces = [b"[" + texts[0], *(b",\r\n" + text for text in texts[1:]), b"]"]
    response = make_response(pieces=pieces)
    found = answer(response, f"{PLACE}:streamGenerateContent")
    assert found.message is not None
    assert found.message.parts == PARTS
    assert (found.streamed, found.complete, found.first_token_us) == (True, True, 1000)
    size = len(b"".join(pieces[:3])) + 20
    half = answer(cut(response, size), f"{PLACE}:streamGenerateContent")
    assert half.message is not None
    assert half.message.parts == (Thinking("hm"), Text("Hel"))
    assert not half.complete


def test_an_error_of_a_stream_may_be_an_array_too() -> None:
    """With one object in it."""
    body = [{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}]
    found = answer(make_response(body, 429), STREAM)
    assert found.error is not None
    assert (found.error.message, found.error.type, found.error.code) == (
        "Quota",
        "RESOURCE_EXHAUSTED",
        "429",
    )
