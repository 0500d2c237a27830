"""What else of a request a provider may put before the prompt: its members and fields that are none of tools, system prompt and messages.

Only what samples, bounds or labels an answer is known to leave a prompt alone. Everything else may change it, whatever it is called: a
verdict is certain only where all of it is as in the call before.

Sources: Anthropic, "Prompt caching" (what invalidates the cache), "MCP connector", "Structured outputs", "Agent Skills"; OpenAI, "Prompt
caching" and "Structured outputs" (the schema is a prefix of the system prompt).
"""

from typing import NamedTuple

from ...tape.dialects.common.untrusted_json import Json, as_object
from ...tape.exchange import Request
from ..steps.model_call import ModelCall
from ..steps.model_context import CACHE_MARKERS
from .compare_prompts import BESIDE, SYSTEM, TOOLS, Moved, first_difference, show_value

_HARMLESS = frozenset(
    [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens_to_sample",
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "stop_sequences",
        "stream",
        "stream_options",
        "metadata",
        "client_metadata",
        "user",
        "safety_identifier",
        "seed",
        "n",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "presence_penalty",
        "frequency_penalty",
        "store",
        "include",
        "background",
        "previous_response_id",
        "model",
    ]
)
"""What samples, bounds and labels an answer."""
_HARMLESS_CONFIG = frozenset(
    [
        "temperature",
        "topP",
        "topK",
        "maxOutputTokens",
        "stopSequences",
        "candidateCount",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
        "responseLogprobs",
        "logprobs",
        "maxTokens",
    ]
)
"""The same inside of `generationConfig` and `inferenceConfig`."""
_CONFIGS = ("generationConfig", "generation_config", "inferenceConfig")
_IN_PROMPT = frozenset(
    [
        "mcp_servers",
        "output_format",
        "output_config",
        "container",
        "response_format",
        "text",
        "prompt",
    ]
)
"""What the provider writes a part of the prompt from."""
_FIELDS = ("anthropic-", "openai-", "x-goog-user-project", "x-amzn-bedrock-")
_LISTED = ("messages", "contents", "input")


class Setting(NamedTuple):
    """What else is another one than in the call before."""

    name: str
    path: str | None
    was: str
    now: str

    @property
    def is_in_prompt(self) -> bool:
        """Whether the provider is known to write a part of the prompt from it."""
        return self.name in _IN_PROMPT

    def as_moved(self) -> Moved:
        """Give it as the part that moved."""
        told = f"{self.name} is set in another way, and the provider puts that before the prompt"
        return Moved(self.name, self.path, self.was, self.now, told)


def find_setting(before: ModelCall, now: ModelCall) -> Setting | None:
    """Find a member of a request that is another one; first one of which the provider writes a part of the prompt."""
    old, new = before.context.tree, now.context.tree
    known = {*SYSTEM, *TOOLS, *CACHE_MARKERS, *_HARMLESS, *_LISTED}
    if now.context.asked.dialect.startswith("anthropic"):
        known |= {name for names in BESIDE.values() for name in names}
    found = []
    for name in dict.fromkeys((*new, *old)):
        if name in known:
            continue
        one, other = _without_sampling(name, old.get(name)), _without_sampling(name, new.get(name))
        difference = first_difference(one, other, f"$.{name}")
        if difference is not None:
            path, was, is_now = difference
            found.append(Setting(name, path, show_value(was), show_value(is_now)))
    found.sort(key=lambda one: not one.is_in_prompt)
    if found:
        return found[0]
    models = [one.answer.model or "" if one.answer is not None else "" for one in (before, now)]
    same_asked = before.context.asked.model == now.context.asked.model
    if same_asked and all(models) and models[0] != models[1]:
        return Setting("the model that answered", None, models[0], models[1])
    return None


def _without_sampling(name: str, value: Json) -> Json:
    if name not in _CONFIGS:
        return value
    kept = {key: one for key, one in as_object(value).items() if key not in _HARMLESS_CONFIG}
    return kept or None


def read_fields(request: Request) -> dict[str, str]:
    """Give the fields of a request, and the parameters of its URL, by which a provider is told how to read it."""
    found = {"parameters of the URL": request.target.partition("?")[2]}
    for name, value in request.headers:
        lower = name.lower().decode("latin-1")
        if lower.startswith(_FIELDS):
            words = sorted(word.strip() for word in value.decode("latin-1").split(","))
            found[lower] = ", ".join(filter(None, [found.get(lower), *words]))
    return found


def find_field(before: dict[str, str], now: dict[str, str]) -> Setting | None:
    """Find a field that is another one than in the call before."""
    for name in dict.fromkeys((*now, *before)):
        was, is_now = before.get(name, ""), now.get(name, "")
        if was != is_now:
            return Setting(name, None, was, is_now)
    return None
