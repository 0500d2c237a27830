"""The APIs at which models are asked, one row each: its dialects, its endpoints, whose prices hold.

`docs/extending.md` says how to add one. A dialect itself is a file in `tape/dialects/`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NO_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class ModelApi(NamedTuple):
    """One API."""

    family: str
    """First word of the names of its dialects; empty for endpoints that speak those of others."""
    endpoints: tuple[str, ...]
    """Match patterns of model calls: what is asked there is inference."""
    prices: str = ""
    """Provider in the price table of `genai-prices`, for an address that is nobody's; empty for none."""
    keys: Mapping[str, tuple[str, ...]] = _NO_KEYS
    """Variables that have the provider's key, by the hosts that are its own.

    `ask` sends a key to no other host unless you say so: others speak the same formats, and a tape may name any host.
    Source: the API references of these providers.
    """


MODEL_APIS = (
    # At OpenAI and at everything that speaks its API (Azure, Groq, Together, OpenRouter,
    # DeepSeek, Mistral, Gemini's compatible paths, vLLM, LiteLLM ...)
    ModelApi(
        "openai",
        (
            "POST *://*/*chat/completions",
            "POST *://*/*v1/completions",
            "POST *://*/*v1/responses",
            "POST *://*/*v1/responses/input_tokens",
            "POST *://*/*v1/responses/compact",
            "POST *://*/*v1/embeddings",
            "POST *://*/*v1/moderations",
            "POST *://*/*v1/images/generations",
            "POST *://*/*v1/images/edits",
            "POST *://*/*v1/images/variations",
            "POST *://*/*v1/audio/*",
            "POST *://*/*v1/rerank",
            # Handshakes of WebSockets; there is no list of responses to be read.
            "GET *://*/*v1/responses",
            "*://*/*v1/realtime",
            "GET *://*/openai/realtime",
            "GET,POST *://*/*codex/responses",
            "POST *://*/openai/deployments/*",
            "POST *://*/openai/responses",
            "POST *://*/openai/v1/*completions",
        ),
        prices="openai",
        keys=dict.fromkeys(
            ("api.openai.com", "eu.api.openai.com", "us.api.openai.com"), ("OPENAI_API_KEY",)
        ),
    ),
    ModelApi(
        "anthropic",
        (
            "POST *://*/*v1/messages",
            "POST *://*/*v1/messages/count_tokens",
            "POST *://*/*v1/complete",
        ),
        prices="anthropic",
        keys={"api.anthropic.com": ("ANTHROPIC_API_KEY",)},
    ),
    # With Vertex
    ModelApi(
        "gemini",
        (
            *(
                f"POST *://*/*:{verb}"
                for verb in (
                    "generateContent",
                    "streamGenerateContent",
                    "generateAnswer",
                    "countTokens",
                    "computeTokens",
                    "embedContent",
                    "batchEmbedContents",
                    "rawPredict",
                    "streamRawPredict",
                )
            ),
            "POST *://*.googleapis.com/*:predict",
            "GET *://*.googleapis.com/ws/*BidiGenerateContent*",
        ),
        prices="google",
        keys={"generativelanguage.googleapis.com": ("GEMINI_API_KEY", "GOOGLE_API_KEY")},
    ),
    ModelApi(
        "bedrock",
        (
            "POST *://*bedrock-runtime*.amazonaws.com/model/*",
            "POST *://*bedrock-runtime*.amazonaws.com.cn/model/*",
            "POST *://*/model/*/converse",
            "POST *://*/model/*/converse-stream",
            "POST *://*/model/*/invoke",
            "POST *://*/model/*/invoke-with-response-stream",
        ),
        prices="aws",
    ),
    # Its port, its usual names, this machine
    ModelApi(
        "ollama",
        (
            *(
                f"POST *://{host}/api/{call}"
                for host in ("*:11434", "*ollama*", "localhost", "127.0.0.1", "[::1]")
                for call in ("chat", "generate", "embed*")
            ),
        ),
    ),
    ModelApi(
        "cohere",
        (
            *(
                f"POST *://api.cohere.{domain}/v*/{call}"
                for domain in ("com", "ai")
                for call in (
                    "chat",
                    "generate",
                    "embed",
                    "rerank",
                    "classify",
                    "summarize",
                    "tokenize",
                    "detokenize",
                )
            ),
        ),
        prices="cohere",
        keys=dict.fromkeys(("api.cohere.com", "api.cohere.ai"), ("CO_API_KEY", "COHERE_API_KEY")),
    ),
    # Besides OpenAI's paths
    ModelApi(
        "mistral",
        (
            "POST *://*.mistral.ai/v1/fim/completions",
            "POST *://*.mistral.ai/v1/agents/completions",
            "POST *://*.mistral.ai/v1/chat/moderations",
            "POST *://*.mistral.ai/v1/classifications",
            "POST *://*.mistral.ai/v1/ocr",
            "POST *://*.mistral.ai/v1/conversations*",
        ),
        prices="mistral",
        keys={"api.mistral.ai": ("MISTRAL_API_KEY",)},
    ),
    # What the others have besides OpenAI's paths
    ModelApi(
        "",
        (
            "POST *://*githubcopilot.com/responses",
            "POST *://api.groq.com/openai/v1/*",
            "POST *://api.deepseek.com/beta/completions",
            "POST *://api.deepseek.com/anthropic/v1/*",
            "POST *://api.voyageai.com/v1/*",
            "POST *://api.jina.ai/v1/*",
            "POST *://api-inference.huggingface.co/*",
            "POST *://router.huggingface.co/*",
        ),
    ),
)

MODEL_ENDPOINTS = tuple(pattern for api in MODEL_APIS for pattern in api.endpoints)


def find_prices(dialect: str) -> str:
    """Find whose prices hold for what a dialect reads; empty for nobody's."""
    family = dialect.partition("-")[0]
    return next((api.prices for api in MODEL_APIS if family and api.family == family), "")
