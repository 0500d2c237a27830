"""Dialects: readers of the wire formats of model providers and MCP servers.

`find_dialect` finds the dialect of a request, `read_request` and `read_response` give the view that all formats
have in common (`common/inference.py`). A view only: the raw bytes are the record, and what cannot be read is None, never
an error. Pure, bounded, and too slow for the way of a request: for looking at a tape, not for serving it.

    openai_chat, openai_responses, openai_completions, openai_embeddings, mistral,
    anthropic_messages, anthropic_complete, gemini, bedrock_converse, bedrock_invoke,
    cohere, cohere_v1, cohere_generate, ollama, mcp    one format each
    openai_chat_fold                           its streams, which others send too
    common/dialect.py, reader.py               the interface of a dialect; how one is found and used
    common/drift_places.py                     the fields of a request that may drift
    framing/                                   streams split into pieces, events, lines or frames
    common/untrusted_json.py, common/provider_errors.py    JSON of any shape; errors of any provider
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .common.dialect import Dialect
    from .common.drift_places import FIELDS, Places, find_in_path
    from .common.inference import (
        ApiError,
        Choice,
        Finish,
        Image,
        InferenceRequest,
        InferenceResponse,
        Message,
        Other,
        Part,
        Refusal,
        Rpc,
        RpcKind,
        Sampling,
        Text,
        Thinking,
        Tool,
        ToolCall,
        ToolResult,
        Usage,
    )
    from .reader import DIALECTS, find_dialect, read_places, read_request, read_response

__all__ = [
    "DIALECTS",
    "FIELDS",
    "ApiError",
    "Choice",
    "Dialect",
    "Finish",
    "Image",
    "InferenceRequest",
    "InferenceResponse",
    "Message",
    "Other",
    "Part",
    "Places",
    "Refusal",
    "Rpc",
    "RpcKind",
    "Sampling",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "find_dialect",
    "find_in_path",
    "read_places",
    "read_request",
    "read_response",
]

_OF_ONE = {
    "common.dialect": ("Dialect",),
    "common.drift_places": ("FIELDS", "Places", "find_in_path"),
    "reader": ("DIALECTS", "find_dialect", "read_places", "read_request", "read_response"),
}
"""By module: its names; `common.inference` has all others."""
_FOUND_IN = {name: module for module, names in _OF_ONE.items() for name in names}


def __getattr__(name: str) -> object:
    """Import what is asked for: the readers of all formats take a twentieth of a command's start, and most commands read none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_FOUND_IN.get(name, 'common.inference')}"), name)
    globals()[name] = found  # from now on it is there
    return found
