"""What providers say of their prompt caches: how long an entry lives, and the least prompt that is kept.

Sources, read 2026-11: Anthropic, "Prompt caching" (5 minutes or 1 hour since the last use; least sizes by model); OpenAI, "Prompt
caching" (5 to 10 minutes of inactivity, one hour at most, or `prompt_cache_retention`; from 1,024 tokens in steps of 128); Gemini,
"Context caching" (implicit; no lifetime is promised; least sizes by model).
"""

import re
from dataclasses import dataclass

from ..steps.model_call import ModelCall
from .compare_prompts import Mark

_TTL = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long an entry of a cache lives since its last use, in seconds."""

    sure_s: float | None
    """It is there for so long; None where nothing is promised."""
    gone_s: float | None
    """It is gone after so long; None where that is not said."""
    source: str


_NONE = Lifetime(None, None, "this provider promises no lifetime")
_GEMINI = Lifetime(None, None, "Gemini promises no lifetime")
_OPENAI = Lifetime(300, 3600, "OpenAI: 5 to 10 minutes without use, one hour at most")
_LEAST = (
    ("claude-opus-4-5", 4096),
    ("claude-opus-4-6", 4096),
    ("claude-haiku-4-5", 4096),
    ("claude-haiku-3", 2048),
    ("claude-3-haiku", 2048),
    ("claude-3-5-haiku", 2048),
    ("gemini-2.5-pro", 4096),
    ("gemini-3", 4096),
)
"""Least sizes other than 1,024 tokens, by how the name of the model begins."""
LEAST = 1024
STEP = 128
"""Tokens in which OpenAI counts what it read."""


def find_lifetime(
    call: ModelCall, host: str, marks: list[Mark], *, is_one: bool = True
) -> Lifetime:
    """Give how long what a call left in the cache lives.

    marks: those of the call on which it rests: the longest counts.
    is_one: whether all marks of the call ask for the same.
    """
    dialect = call.context.asked.dialect
    if marks:
        longest = max(marks, key=lambda mark: read_ttl(mark.ttl) or 0)
        ttl = read_ttl(longest.ttl)
        if ttl is None:
            return _NONE
        which = "the mark" if is_one else f"the mark at {longest.path.rpartition('.')[0]}"
        return Lifetime(ttl, ttl, f"{longest.ttl} since the last use, as {which} asks")
    if dialect.startswith("openai"):
        kept = call.context.tree.get("prompt_cache_retention")
        ttl = read_ttl(kept) if isinstance(kept, str) else None
        if ttl is not None:
            return Lifetime(ttl, ttl, f"{kept}, as `prompt_cache_retention` asks")
        own = host.endswith(("openai.com", "openai.azure.com"))
        return _OPENAI if own else _NONE
    return _GEMINI if dialect.startswith("gemini") else _NONE


def read_ttl(text: str) -> float | None:
    """Read a lifetime as a mark states it, in seconds."""
    found = _TTL.fullmatch(text)
    return float(found[1]) * _UNITS[found[2]] if found is not None else None


def find_least(model: str | None) -> int:
    """Give the least prompt that is cached, in tokens."""
    name = (model or "").rpartition("/")[2].rpartition("anthropic.")[2].lower()
    return next((least for begin, least in _LEAST if name.startswith(begin)), LEAST)


def is_marked(call: ModelCall) -> bool:
    """Say whether a provider caches nothing but what a request marks."""
    dialect, model = call.context.asked.dialect, (call.context.asked.model or "").lower()
    return dialect.startswith("anthropic") or (dialect.startswith("bedrock") and "claude" in model)


def leaves_out_zero(call: ModelCall) -> bool:
    """Say whether a provider leaves out the count of tokens read where it is zero."""
    return call.context.asked.dialect.startswith("gemini")
