"""Which client asks a model, and the refusal that it does not retry and prints.

Rules:

1. A model call of a client in the table is refused with 400, which every SDK and agent takes for final. 424 is retried by Codex
   (5 times), by LiteLLM and what stands on it (aider: without end), and by LangChain.js (6 times, for minutes).
2. The body has the shape in which the client looks for a message to print: the common one, Google's for Gemini CLI, plain text for
   Codex, which prints the body as it is.
3. A client is known by its user agent. Whoever is not in the table takes 424 for final, or is unknown, and gets it, as does every
   request that asks no model.

Source: each of these clients run against each status (2026-11): `tests/journeys/test_refusals.py`. A client profile may take this over.
"""

from enum import StrEnum
from typing import NamedTuple

from ...config.schema import Classes
from ..classify.by_method_and_url import classify
from ..exchange import HttpRequest, RequestClass

FINAL_STATUS = 400
"""Bad Request: no SDK asks again."""


_RAW_RESPONSE = b"x-stainless-raw-response"


class RefusalShape(StrEnum):
    """What the body of a refusal looks like."""

    COMMON = "common"
    """JSON in which OpenAI's, Anthropic's, Stripe's and AWS's SDKs find a message."""
    GOOGLE = "google"
    """JSON of Google's APIs: a number and a canonical status beside the message."""
    TEXT = "text"
    """The message and nothing else."""


class RefusalClient(NamedTuple):
    """A client that asks models."""

    name: str
    agent: bytes
    """What its `User-Agent` begins with, in lower case."""
    shape: RefusalShape = RefusalShape.COMMON
    field: bytes = b""
    """A header field that it sends with the value `true`; empty where its user agent says enough."""


REFUSAL_CLIENTS = (
    RefusalClient("Codex", b"codex", RefusalShape.TEXT),
    RefusalClient("Gemini CLI", b"geminicli", RefusalShape.GOOGLE),
    RefusalClient("LiteLLM", b"litellm"),
    # The SDK itself takes 424 for final. LiteLLM, aider and langchain-openai ask through it for raw responses.
    RefusalClient("LiteLLM", b"openai/python", field=_RAW_RESPONSE),
    RefusalClient("LiteLLM", b"asyncopenai/python", field=_RAW_RESPONSE),
    RefusalClient("LangChain.js", b"langchainjs"),
)


def find_refusal_client(request: HttpRequest) -> RefusalClient | None:
    """Find the client that asks a model; None where another one asks, or for anything else."""
    agent = (request.header(b"user-agent") or b"").lower()
    found = next((one for one in REFUSAL_CLIENTS if _is(one, agent, request)), None)
    if found is None:
        return None
    place = request.scheme, request.host, request.port, request.target
    kind = classify(request.method.upper(), *place, _SHIPPED_CLASSES).of
    return found if kind is RequestClass.INFERENCE else None


def _is(client: RefusalClient, agent: bytes, request: HttpRequest) -> bool:
    if not agent.startswith(client.agent):
        return False
    return not client.field or (request.header(client.field) or b"").lower() == b"true"


_SHIPPED_CLASSES = Classes()
