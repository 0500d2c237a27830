"""A key takes the place of the placeholder on the tape, wherever it stood; without one nothing is sent."""

from dataclasses import replace

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.run_again.fill_in_credential import VARIABLES, with_credential, without_framing
from playhead.tape.exchange import Exchange, Redaction
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, raw_request

KEY = "sk-of-today"
BODY = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
CHAT = "https://api.openai.com/v1/chat/completions"
SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"


def redacted(url: str, body: object = BODY, **fields: str) -> Exchange:
    """A call as it is on a tape."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    asked = make_request(url, body, named)
    request, redactions = Redactor(b"key").request(raw_request(asked))
    return make_exchange(1, request=request, redactions=redactions)


@pytest.mark.parametrize(
    ("url", "field", "value", "variable"),
    [
        (CHAT, "authorization", f"Bearer {SECRET}", "OPENAI_API_KEY"),
        ("https://api.anthropic.com/v1/messages", "x-api-key", SECRET, "ANTHROPIC_API_KEY"),
        ("https://API.mistral.ai/v1/chat/completions", "authorization", f"Bearer {SECRET}", "MISTRAL_API_KEY"),
    ],
)  # fmt: skip
def test_the_key_stands_where_the_placeholder_was(
    url: str, field: str, value: str, variable: str
) -> None:
    """And is from the variable that people have it in."""
    recorded = redacted(url, **{field: value})
    filled, named = with_credential(recorded, None, {variable: KEY})
    assert dict(filled.headers)[field.encode()] == value.replace(SECRET, KEY).encode()
    assert named == variable
    other, named = with_credential(recorded, "MINE", {"MINE": "another"})
    assert named == "MINE"
    assert dict(other.headers)[field.encode()].endswith(b"another")


def test_a_key_in_the_query_is_put_there() -> None:
    """As of Gemini."""
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    recorded = redacted(
        f"{url}?key=AIzaSyD-abcdefghijklmnopqrstuvwxyz12345&alt=x", {"contents": contents}
    )
    recorded = replace(recorded, redactions=(Redaction("request.query.key", "key"),))
    filled, _ = with_credential(recorded, None, {"GEMINI_API_KEY": KEY})
    assert filled.target.endswith(f"?key={KEY}&alt=x")


def test_what_needs_no_key_gets_none() -> None:
    """As a model on this machine."""
    recorded = redacted("http://127.0.0.1:11434/api/chat")
    assert with_credential(recorded, None, {}) == (recorded.request, "")


@pytest.mark.parametrize(
    "url",
    [
        "https://llm.example.com/v1/chat/completions",
        "https://api.deepseek.com/v1/chat/completions",
        "https://api.openai.com.example.com/v1/chat/completions",
        "https://x.openai.azure.com/openai/deployments/d/chat/completions",
        "http://api.openai.com/v1/chat/completions",
        "https://api.openai.com:8443/v1/chat/completions",
        "http://127.0.0.1:8000/v1/chat/completions",
        "https://llm.example.com/v1/messages",
    ],
)
def test_a_providers_key_goes_to_no_other_host(url: str) -> None:
    """Others speak its format, too, and a tape may name any host."""
    every = {name: KEY for names in VARIABLES.values() for name in names}
    recorded = redacted(url, authorization=f"Bearer {SECRET}")
    with pytest.raises(EngineError) as told:
        with_credential(recorded, None, every)
    assert "no host of a known provider" in str(told.value)
    assert "--key-env" in (told.value.hint or "")
    assert with_credential(recorded, "MINE", {"MINE": KEY}).variable == "MINE"


@pytest.mark.parametrize(
    ("recorded", "variable", "says"),
    [
        (redacted(CHAT, authorization=f"Bearer {SECRET}"), None, "OPENAI_API_KEY is not set"),
        (redacted(CHAT, authorization=f"Bearer {SECRET}"), "MINE", "MINE is not set"),
        (redacted(CHAT, x_tenant_key=SECRET), None, "secrets in x-tenant-key"),
        (redacted(CHAT, authorization="AWS4-HMAC-SHA256 Credential=x"), None, "is signed"),
        (redacted(CHAT, {**BODY, "api_key": SECRET}), None, "secrets in request.body"),
        (redacted(CHAT, authorization=f"Bearer {SECRET}", api_key=SECRET), None, "credentials in api-key, authorization"),
        (redacted("https://llm.test/x", authorization=f"Bearer {SECRET}"), None, "with --key-env"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_sent_again_is_refused(
    recorded: Exchange, variable: str | None, says: str
) -> None:
    """With what is missing."""
    with pytest.raises(EngineError) as told:
        with_credential(recorded, variable, {})
    assert says in f"{told.value}; {told.value.hint}"


def test_what_is_of_the_connection_is_left_out() -> None:
    """The client writes it anew."""
    headers = ((b"Host", b"a"), (b"Connection", b"close"), (b"content-length", b"1"), (b"X", b"y"))
    assert without_framing(headers) == ((b"Host", b"a"), (b"X", b"y"))
