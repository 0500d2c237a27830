"""Which refusal a client gets: the one that it takes for final and prints."""

import json

import pytest

from playhead.tape.exchange import Headers, Request
from playhead.tape.policy.refusal import refusal_body, refusal_headers, refusal_status

CHAT = "POST api.openai.com/v1/chat/completions"
RESPONSES = "POST api.openai.com/v1/responses"
MESSAGES = "POST api.anthropic.com/v1/messages"
GEMINI = "POST generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse"

RAW = "x-stainless-raw-response"
CASES = [
    # What is asked, user agent, status, shape; `RAW` behind the user agent: that field says `true`
    (RESPONSES, "codex_exec/0.169.0 (Debian 12.0.0; x86_64)", 400, "text"),
    (RESPONSES, "codex_cli_rs/0.46.0 (Mac OS 15)", 400, "text"),
    ("GET api.openai.com/v1/responses", "codex_exec/0.169.0", 400, "text"),
    (GEMINI, "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)", 400, "google"),
    (GEMINI, "GeminiCLI/0.11.0/gemini-2.5-pro (linux; x64)", 400, "google"),
    (MESSAGES, "litellm/1.80.0", 400, "common"),
    (CHAT, f"OpenAI/Python 2.8.0 {RAW}", 400, "common"),
    (CHAT, f"AsyncOpenAI/Python 2.8.0 {RAW}", 400, "common"),
    (CHAT, "langchainjs-openai/1.0.0 ((node/v20.20.2; linux; x64))", 400, "common"),
    # These take 424 for final, and print its message.
    (CHAT, "OpenAI/Python 2.8.0", 424, "common"),
    (CHAT, "AsyncOpenAI/Python 2.8.0", 424, "common"),
    (CHAT, "OpenAI/JS 6.1.0", 424, "common"),
    (MESSAGES, "claude-cli/2.1.197 (external, sdk-cli)", 424, "common"),
    (CHAT, "QwenCode/0.15.10 (linux; x64)", 424, "common"),
    (CHAT, "opencode/1.18.33 ai-sdk/provider-utils/4.0.23", 424, "common"),
    (MESSAGES, "Anthropic/Python 1.0.0", 424, "common"),
    (GEMINI, "google-genai-sdk/2.0.0 gl-python/3.13.0", 424, "common"),
    (CHAT, f"python-httpx/0.28.1 {RAW}", 424, "common"),
    (CHAT, "curl/8.5.0", 424, "common"),
    (CHAT, "", 424, "common"),
    # What is no model call
    ("POST api.openai.com/v1/files", f"OpenAI/Python 2.8.0 {RAW}", 424, "common"),
    ("GET api.openai.com/v1/models", "codex_exec/0.169.0", 424, "common"),
    ("POST api.stripe.com/v1/refunds", "Stripe/v1 PythonBindings/15.0.0", 424, "common"),
]


@pytest.mark.parametrize(("line", "agent", "status", "shape"), CASES)
def test_a_client_gets_the_refusal_that_it_prints(
    line: str, agent: str, status: int, shape: str
) -> None:
    """Status and shape by client, for model calls alone; the header that marks it is always there."""
    method, place = line.split()
    host, _, path = place.partition("/")
    named, raw = agent.removesuffix(f" {RAW}"), agent.endswith(RAW)
    fields: Headers = ((b"user-agent", named.encode()),) if agent else ()
    fields += ((RAW.encode(), b"true"),) if raw else ()
    request = Request(method, "https", host, 443, f"/{path}", "HTTP/1.1", fields)
    assert refusal_status(request) == status
    body, headers = (
        refusal_body(request, None, "not on the tape"),
        dict(refusal_headers("not on the tape", request)),
    )
    assert headers[b"x-playhead"] == b"refused; not on the tape"
    assert headers[b"x-should-retry"] == b"false"
    message = f"Playhead refused {method} https://{host}/{path}: not on the tape"
    if shape == "text":
        assert body.decode() == message
        assert headers[b"content-type"] == b"text/plain; charset=utf-8"
        return
    assert headers[b"content-type"] == b"application/json"
    told = json.loads(body)
    assert told["error"]["message"] == message
    if shape == "google":
        assert told == {"error": {"code": 400, "message": message, "status": "FAILED_PRECONDITION"}}
    else:
        assert told["error"]["code"] == "not_on_tape"
        assert told["playhead"]["refused"] is True
