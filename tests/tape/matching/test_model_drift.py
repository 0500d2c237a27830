"""What drifted and what did not: one field at a time, in every format, and never anything else."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, ModelDrift, parse_match
from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.dialects import FIELDS, find_dialect
from playhead.tape.exchange import Request, RequestClass, Seq
from playhead.tape.matching.model_drift import (
    Drift,
    advise,
    describe,
    describe_allowed,
    drift_differences,
    find_drift,
    take_apart,
)
from playhead.tests.support.counts import tries
from playhead.tests.support.dialects import make_request

RULES = compile_rules()
MANY = tries(20, 1000)


def compare(recorded: Request, asked: Request) -> Drift | None:
    """Say how a request drifted from a recorded one."""
    old, new = (take_apart(one, RequestClass.INFERENCE, RULES) for one in (recorded, asked))
    return None if old is None or new is None else find_drift(old, new)


def put(body: Any, place: str, value: object) -> Any:
    """Give a copy of a body with another value at a place; `...` takes it away, with what held it alone."""
    made = copy.deepcopy(body)
    outer, names = made, place.split(".")
    for name in names[:-1]:
        outer = outer[int(name)] if isinstance(outer, list) else outer.setdefault(name, {})
    if isinstance(outer, list):
        outer[int(names[-1]) : int(names[-1]) + 1] = [] if value is ... else [value]
    elif value is ...:
        del outer[names[-1]]
    else:
        outer[names[-1]] = value
    return made


@pytest.mark.parametrize("other_model", [False, True])
def test_what_a_rule_leaves_out_of_a_prompt_has_not_drifted(*, other_model: bool) -> None:
    """Neither named as a cause, nor counted as a field that differs; what a profile leaves out is left out in the same way."""
    ignored = IgnoreRule(parse_match("*://*"), regex=("cch=([0-9a-f]+);",))
    rules = compile_rules((ignored,))

    def make(hash_: str, text: str, model: str) -> Request:
        system = [{"type": "text", "text": f"cch={hash_};"}, {"type": "text", "text": text}]
        return ask("anthropic", body={"model": model, "system": system, "messages": TALK})

    text, model = ("be brief", "m-2") if other_model else ("be long", "m-1")
    recorded, asked = make("32165", "be brief", "m-1"), make("216bf", text, model)
    drift = find_drift(
        *(take_apart(one, RequestClass.INFERENCE, rules) for one in (recorded, asked))  # type: ignore[arg-type]
    )
    assert drift is not None
    assert drift.fields == (("model",) if other_model else ("system",))
    (found,) = drift_differences(recorded, asked, rules)
    assert found.place == ("body $.model" if other_model else "body $.system[1].text")


TALK = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"a": 1}}}
CHAT = {
    "model": "m-1",
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "tools": [TOOL],
    "messages": [{"role": "system", "content": "Be brief."}, *TALK],
}
CHAT_PLACES = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "tools": "tools.0.function.description",
    "system": "messages.0.content",
}
ANTHROPIC = {
    "model": "m-1",
    "max_tokens": 5,
    "temperature": 0.5,
    "top_p": 0.9,
    "tools": [{"name": "f", "description": "d", "input_schema": {}}],
    "system": "Be brief.",
    "messages": TALK,
}
ANTHROPIC_PLACES = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "tools": "tools.0.description",
    "system": "system",
}
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "generationConfig": {"temperature": 0.5, "topP": 0.9, "seed": 7},
    "tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
}
GEMINI_PLACES = {
    "temperature": "generationConfig.temperature",
    "top_p": "generationConfig.topP",
    "seed": "generationConfig.seed",
    "tools": "tools.0.functionDeclarations.0.description",
    "system": "systemInstruction.parts.0.text",
}
CONVERSE = {
    "messages": [{"role": "user", "content": [{"text": "hi"}]}],
    "inferenceConfig": {"temperature": 0.5, "topP": 0.9},
    "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d"}}]},
    "system": [{"text": "Be brief."}],
}
CONVERSE_PLACES = {
    "temperature": "inferenceConfig.temperature",
    "top_p": "inferenceConfig.topP",
    "tools": "toolConfig.tools.0.toolSpec.description",
    "system": "system.0.text",
}
OPENAI = "https://api.openai.com/v1"
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/{}"
AZURE = "https://x.openai.azure.com/openai/deployments/{}/chat/completions?api-version=1"
GOOGLE = "https://generativelanguage.googleapis.com/v1beta/models/{}:generateContent"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/{}"
NO_MODEL = {key: value for key, value in CHAT.items() if key != "model"}

FORMATS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "openai-chat": (f"{OPENAI}/chat/completions", CHAT, CHAT_PLACES),
    "openai-chat functions": (
        f"{OPENAI}/chat/completions",
        {"messages": TALK, "functions": [{"name": "f"}]},
        {"tools": "functions.0.name"},
    ),
    "openai-chat Azure": (AZURE, NO_MODEL, {k: v for k, v in CHAT_PLACES.items() if k != "model"}),
    "openai-responses": (
        f"{OPENAI}/responses",
        {
            "model": "m-1",
            "input": TALK,
            "instructions": "Be brief.",
            "temperature": 0.5,
            "top_p": 0.9,
            "tools": [{"type": "function", "name": "f", "description": "d"}],
        },
        {**ANTHROPIC_PLACES, "system": "instructions"},
    ),
    "openai-responses input": (
        f"{OPENAI}/responses",
        {"model": "m-1", "input": [{"role": "developer", "content": "Be brief."}, *TALK]},
        {"model": "model", "system": "input.0.content"},
    ),
    "openai-completions": (
        f"{OPENAI}/completions",
        {"model": "m-1", "prompt": "hi", "temperature": 0.5, "top_p": 0.9, "seed": 7},
        {key: key for key in ("model", "temperature", "top_p", "seed")},
    ),
    "openai-embeddings": (
        f"{OPENAI}/embeddings",
        {"model": "m-1", "input": "hi"},
        {"model": "model"},
    ),
    "mistral": (
        "https://api.mistral.ai/v1/chat/completions",
        {**{k: v for k, v in CHAT.items() if k != "seed"}, "random_seed": 7},
        {**CHAT_PLACES, "seed": "random_seed"},
    ),
    "mistral agent": (
        "https://api.mistral.ai/v1/agents/completions",
        {"agent_id": "m-1", "messages": TALK},
        {"model": "agent_id"},
    ),
    "mistral Vertex": (
        VERTEX.format("mistralai/models/{}:rawPredict"),
        NO_MODEL,
        {k: v for k, v in CHAT_PLACES.items() if k != "model"},
    ),
    "anthropic": ("https://api.anthropic.com/v1/messages", ANTHROPIC, ANTHROPIC_PLACES),
    "anthropic Vertex": (
        VERTEX.format("anthropic/models/{}:streamRawPredict"),
        {k: v for k, v in ANTHROPIC.items() if k != "model"},
        {k: v for k, v in ANTHROPIC_PLACES.items() if k != "model"},
    ),
    "anthropic-complete": (
        "https://api.anthropic.com/v1/complete",
        {
            "model": "m-1",
            "prompt": "hi",
            "max_tokens_to_sample": 5,
            "temperature": 0.5,
            "top_p": 0.9,
        },
        {key: key for key in ("model", "temperature", "top_p")},
    ),
    "gemini": (GOOGLE, GEMINI, GEMINI_PLACES),
    "gemini other spelling": (
        GOOGLE,
        {
            "contents": GEMINI["contents"],
            "generation_config": {"top_p": 0.9, "seed": 7},
            "system_instruction": {"parts": [{"text": "Be brief."}]},
        },
        {
            "top_p": "generation_config.top_p",
            "seed": "generation_config.seed",
            "system": "system_instruction.parts.0.text",
        },
    ),
    "gemini wrapped": (
        "https://cloudcode-pa.googleapis.com/v1internal:generateContent",
        {"model": "m-1", "request": GEMINI},
        {"model": "model", **{key: f"request.{place}" for key, place in GEMINI_PLACES.items()}},
    ),
    "gemini tuned": (
        "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/{}:generateContent",
        GEMINI,
        GEMINI_PLACES,
    ),
    "bedrock-converse": (BEDROCK.format("{}/converse"), CONVERSE, CONVERSE_PLACES),
    "bedrock-invoke Anthropic": (
        BEDROCK.format("{}/invoke"),
        {
            **{k: v for k, v in ANTHROPIC.items() if k != "model"},
            "anthropic_version": "bedrock-2023-05-31",
        },
        {k: v for k, v in ANTHROPIC_PLACES.items() if k != "model"},
    ),
    "bedrock-invoke Nova": (
        BEDROCK.format("{}/invoke-with-response-stream"),
        {"schemaVersion": "messages-v1", **CONVERSE},
        CONVERSE_PLACES,
    ),
    "bedrock-invoke chat": (
        BEDROCK.format("{}/invoke"),
        NO_MODEL,
        {k: v for k, v in CHAT_PLACES.items() if k != "model"},
    ),
    "bedrock-invoke Titan": (
        BEDROCK.format("{}/invoke"),
        {"inputText": "hi", "textGenerationConfig": {"temperature": 0.5, "topP": 0.9}},
        {"temperature": "textGenerationConfig.temperature", "top_p": "textGenerationConfig.topP"},
    ),
    "bedrock-invoke Command R": (
        BEDROCK.format("{}/invoke"),
        {"message": "hi", "preamble": "Be brief.", "p": 0.9},
        {"system": "preamble", "top_p": "p"},
    ),
    "cohere": (
        "https://api.cohere.com/v2/chat",
        {**{k: v for k, v in CHAT.items() if k != "top_p"}, "p": 0.9},
        {**CHAT_PLACES, "top_p": "p"},
    ),
    "cohere-v1": (
        "https://api.cohere.com/v1/chat",
        {
            **{key: CHAT[key] for key in ("model", "temperature", "seed")},
            "p": 0.9,
            "message": "hi",
            "preamble": "Be brief.",
            "tools": [{"name": "f", "description": "d"}],
        },
        {
            **CHAT_PLACES,
            "top_p": "p",
            "tools": "tools.0.description",
            "system": "preamble",
        },
    ),
    "cohere-generate": (
        "https://api.cohere.com/v1/generate",
        {"model": "m-1", "prompt": "hi", "temperature": 0.5, "p": 0.9, "seed": 7},
        {"model": "model", "temperature": "temperature", "top_p": "p", "seed": "seed"},
    ),
    "ollama": (
        "http://127.0.0.1:11434/api/chat",
        {
            "model": "m-1",
            "messages": CHAT["messages"],
            "tools": [TOOL],
            "options": {"temperature": 0.5, "top_p": 0.9, "seed": 7},
        },
        {
            **CHAT_PLACES,
            "temperature": "options.temperature",
            "top_p": "options.top_p",
            "seed": "options.seed",
        },
    ),
    "ollama generate": (
        "http://127.0.0.1:11434/api/generate",
        {"model": "m-1", "prompt": "hi", "system": "Be brief."},
        {"model": "model", "system": "system"},
    ),
}
"""By format: URL, where `{}` stands for the model; a body; and by field where in it something may differ."""

OTHER: dict[str, object] = {
    "model": "m-2",
    "temperature": 0.25,
    "top_p": 0.5,
    "seed": 8,
    "tools": "other",
    "system": "Be long.",
}
ROWS = [
    (name, field, place)
    for name, (_, _, places) in FORMATS.items()
    for field, place in places.items()
]


def path_of(place: str) -> str:
    """Give a place as a JSON path."""
    return "$" + "".join(f"[{n}]" if n.isdigit() else f".{n}" for n in place.split("."))


def ask(name: str, model: str = "m-1", body: object = None) -> Request:
    """Give a request of a format."""
    url, usual, _ = FORMATS[name]
    return make_request(url.format(model), usual if body is None else body)


def test_every_dialect_that_asks_models_is_in_the_table() -> None:
    """But MCP, in which nothing drifts."""
    from playhead.tape.dialects import DIALECTS

    told = {found.name for name in FORMATS if (found := find_dialect(ask(name)))}
    assert told == {dialect.name for dialect in DIALECTS} - {"mcp"}


@pytest.mark.parametrize(("name", "field", "place"), ROWS)
def test_one_field_alone_is_drift_and_is_named_with_its_path(
    name: str, field: str, place: str
) -> None:
    """With both values, whatever the format."""
    body = FORMATS[name][1]
    recorded, asked = ask(name), ask(name, body=put(body, place, OTHER[field]))
    drift = compare(recorded, asked)
    assert drift is not None
    assert drift.fields == (field,)
    (found,) = drift_differences(recorded, asked, RULES)
    assert found.place == f"body {path_of(place)}"
    assert found.asked == json.dumps(OTHER[field])
    assert found.recorded not in (found.asked, "(absent)")


@pytest.mark.parametrize(
    ("name", "field", "place"),
    [row for row in ROWS if row[1] not in ("model", "tools", "system")],
)
def test_a_field_that_only_one_side_has_is_drift(name: str, field: str, place: str) -> None:
    """Left out or put in, with the object that held nothing else."""
    url, body, places = FORMATS[name]
    bare = put(body, place, ...)
    holder = place.rpartition(".")[0]
    if holder:
        for other in places.values():
            if other.rpartition(".")[0] == holder and other != place:
                body, bare = put(body, other, ...), put(bare, other, ...)
    empty, none = bare, put(bare, holder, ...) if holder else bare
    for one in (empty, none):
        for old, new in ((body, one), (one, body)):
            drift = compare(make_request(url.format("m"), old), make_request(url.format("m"), new))
            assert drift is not None
            assert drift.fields == (field,)
    assert (
        compare(make_request(url.format("m"), empty), make_request(url.format("m"), none)) is None
    )


@pytest.mark.parametrize(
    ("name", "place", "field"),
    [
        ("openai-chat", "tools", "tools"),
        ("openai-chat", "messages.0", "system"),
        ("openai-responses input", "input.0", "system"),
        ("anthropic", "tools", "tools"),
        ("anthropic", "system", "system"),
        ("gemini", "systemInstruction", "system"),
        ("bedrock-converse", "toolConfig", "tools"),
        ("bedrock-converse", "system", "system"),
        ("ollama", "messages.0", "system"),
    ],
)
def test_tools_and_a_prompt_that_only_one_side_has_are_drift(
    name: str, place: str, field: str
) -> None:
    """The other side is shown as absent."""
    body = FORMATS[name][1]
    recorded, asked = ask(name), ask(name, body=put(body, place, ...))
    drift = compare(recorded, asked)
    assert drift is not None
    assert drift.fields == (field,)
    assert [one.asked for one in drift_differences(recorded, asked, RULES)] == ["(absent)"]
    assert [one.recorded for one in drift_differences(asked, recorded, RULES)] == ["(absent)"]


@pytest.mark.parametrize("name", [name for name, (url, _, _) in FORMATS.items() if "{}" in url])
def test_a_model_in_the_path_is_drift(name: str) -> None:
    """Gemini, Bedrock, Azure, Vertex: both paths are shown."""
    recorded, asked = ask(name), ask(name, "m-2%3A0")
    drift = compare(recorded, asked)
    assert drift is not None
    assert drift.fields == ("model",)
    before = "endpoints/" if "tuned" in name else ""
    assert drift.models == (ModelDrift(f"{before}m-1", f"{before}m-2:0"),)
    (found,) = drift_differences(recorded, asked, RULES)
    assert found.place == "path"
    assert "m-1" in found.recorded
    assert "m-2" in found.asked


CHANGES: dict[str, tuple[str, object]] = {
    "openai-chat": ("messages.1.content", "hello"),
    "anthropic": ("messages.0.content", "hello"),
    "gemini": ("contents.0.parts.0.text", "hello"),
    "bedrock-converse": ("messages.0.content.0.text", "hello"),
    "ollama": ("messages.1.content", "hello"),
    "cohere-v1": ("message", "hello"),
}


@pytest.mark.parametrize(
    ("name", "field", "place"), [row for row in ROWS if row[0] in CHANGES], ids=str
)
def test_a_field_together_with_a_message_is_no_drift(name: str, field: str, place: str) -> None:
    """One other change, and the answer may be to another question."""
    body = put(put(FORMATS[name][1], place, OTHER[field]), *CHANGES[name])
    assert compare(ask(name), ask(name, body=body)) is None


def test_all_fields_may_drift_at_once() -> None:
    """Each is named, in one order."""
    body = FORMATS["openai-chat"][1]
    for field, place in CHAT_PLACES.items():
        body = put(body, place, OTHER[field])
    drift = compare(ask("openai-chat"), ask("openai-chat", body=body))
    assert drift is not None
    assert drift.fields == FIELDS
    found = [
        one.place
        for one in drift_differences(ask("openai-chat"), ask("openai-chat", body=body), RULES)
    ]
    assert found == [f"body {path_of(CHAT_PLACES[field])}" for field in FIELDS]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("messages.0.role", "developer"), "the role of a prompt"),
        (("messages.0.name", "x"), "who speaks"),
        (("messages.0.content", [{"type": "text", "text": "Be brief."}]), "its shape"),
        (("messages.0.role", "user"), "no prompt any more"),
        (("max_tokens", 5), "a limit"),
        (("stream", True), "how it is answered"),
        (("tool_choice", "none"), "which tool"),
        (("model_", "m"), "a name that is like one"),
        (("metadata", {}), "an empty object"),
    ],
)
def test_what_is_beside_the_fields_is_no_drift(change: tuple[str, object], what: str) -> None:
    """Alone it is none, nor together with one; of a prompt, its text has to be another."""
    body = put(CHAT, *change)
    assert compare(ask("openai-chat"), ask("openai-chat", body=body)) is None, what
    if not change[0].startswith("messages"):
        body = put(body, "temperature", 0.25)
        assert compare(ask("openai-chat"), ask("openai-chat", body=body)) is None, what


@pytest.mark.parametrize(
    "asked",
    [
        make_request("https://api.openai.com/v1/chat/completions?x=1", put(CHAT, "seed", 8)),
        make_request("https://other.test/v1/chat/completions", put(CHAT, "seed", 8)),
        make_request("http://api.openai.com/v1/chat/completions", put(CHAT, "seed", 8)),
        make_request("https://api.openai.com/v2/chat/completions", put(CHAT, "seed", 8)),
        make_request(
            "https://api.openai.com/v1/chat/completions", put(CHAT, "seed", 8), {"accept": "a/b"}
        ),
        make_request("https://api.openai.com/v1/chat/completions", b'{"model": "m-2", broken'),
        make_request("https://api.openai.com/v1/chat/completions", b""),
        make_request("https://api.openai.com/v1/things", put(CHAT, "seed", 8)),
    ],
    ids=lambda request: request.url,
)
def test_another_place_or_a_broken_body_is_no_drift(asked: Request) -> None:
    """Host, scheme, path, query and the header fields that count are the same, and there is a dialect."""
    assert compare(ask("openai-chat"), asked) is None


def test_no_dialect_never_drifts() -> None:
    """What is like a chat, but at a place that is none."""
    one = make_request("https://x.test/ask", CHAT)
    assert compare(one, make_request("https://x.test/ask", put(CHAT, "model", "m-2"))) is None


def test_streaming_instead_of_not_is_no_drift() -> None:
    """Gemini and Bedrock say so in the path."""
    url = FORMATS["gemini"][0]
    other = url.replace("generate", "streamGenerate").format("m-2")
    assert compare(ask("gemini"), make_request(other, GEMINI)) is None


def test_the_order_of_keys_and_white_space_is_no_change() -> None:
    """The rest is compared in canonical form."""
    body = json.dumps(put(CHAT, "seed", 8), indent=3, sort_keys=True).encode()
    drift = compare(ask("openai-chat"), ask("openai-chat", body=body))
    assert drift is not None
    assert drift.fields == ("seed",)


def test_a_field_that_stands_twice_counts_with_all_its_values() -> None:
    """The text of a number too: what is equal is equal as written."""
    url = FORMATS["openai-chat"][0]
    base = b'{"messages": [], "model": "m", "temperature": %b}'
    one, other = make_request(url, base % b"1"), make_request(url, base % b"1.0")
    assert compare(one, other) == Drift(("temperature",), (ModelDrift("m", "m"),))
    twice = make_request(url, base % b'1, "temperature": 2')
    assert compare(one, twice) == Drift(("temperature",), (ModelDrift("m", "m"),))


# ---- what has to be allowed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "allowed"),
    [
        ((), False),
        (("m-1=m-2",), True),
        (("m-2=m-1",), False),
        (("m-1=m-1",), False),
        (("m-2=m-2",), False),
        (("m-1=m-20",), False),
        (("x=y", "m-1=m-2"), True),
    ],
)
def test_both_names_have_to_be_given(given_: tuple[str, ...], allowed: bool) -> None:
    """The recorded one first."""
    body = put(put(CHAT, "model", "m-2"), "seed", 8)
    drift = compare(ask("openai-chat"), ask("openai-chat", body=body))
    assert drift is not None
    opt_ins = [ModelDrift(*one.split("=")) for one in given_]
    assert drift.allowed_by(opt_ins) is allowed


def test_a_deployment_and_a_model_are_allowed_each() -> None:
    """Azure answers with the deployment, whatever the body names."""
    url, body = FORMATS["openai-chat Azure"][0], FORMATS["openai-chat Azure"][1]
    recorded = make_request(url.format("d-1"), {**body, "model": "m"})
    same = compare(recorded, make_request(url.format("d-1"), {**body, "model": "m", "seed": 8}))
    moved = compare(recorded, make_request(url.format("d-2"), {**body, "model": "m"}))
    both = compare(recorded, make_request(url.format("d-2"), {**body, "model": "n"}))
    bare = compare(recorded, make_request(url.format("d-1"), body))
    assert [drift and drift.models for drift in (same, moved, both, bare)] == [
        (ModelDrift("d-1", "d-1"),),
        (ModelDrift("d-1", "d-2"),),
        (ModelDrift("m", "n"), ModelDrift("d-1", "d-2")),
        (ModelDrift("m", "d-1"),),
    ]
    assert both is not None
    assert not both.allowed_by([ModelDrift("m", "n")])
    assert both.allowed_by([ModelDrift("d-1", "d-2"), ModelDrift("m", "n")])


@pytest.mark.parametrize("model", [None, 5, "", "a\nb", " a", "x" * 501, ["a"]])
def test_what_names_no_model_cannot_be_allowed(model: object) -> None:
    """Nothing can be typed for it."""
    drift = compare(ask("openai-chat"), ask("openai-chat", body={**CHAT, "model": model}))
    assert drift is not None
    assert drift.models == ()
    assert not drift.allowed_by([ModelDrift("m-1", "m-1")])
    assert "cannot be allowed" in advise(drift)


def test_nothing_is_advised_where_the_model_is_the_same() -> None:
    """Another temperature or prompt is another question: the flag would hide that."""
    drift = compare(ask("openai-chat"), ask("openai-chat", body={**CHAT, "seed": 8}))
    assert drift is not None
    assert advise(drift) == "the model is the same and seed changed: undo that, or record again"


def test_the_text_names_the_flag_as_it_is_typed() -> None:
    """With both models; what a shell would read is quoted."""
    drift = compare(
        ask("openai-chat"), ask("openai-chat", body={**CHAT, "model": "a b", "seed": 8})
    )
    assert drift is not None
    assert describe(drift, Seq(3)) == "drifted from exchange 3 in model and seed alone"
    assert advise(drift) == "allow it with --allow-model-drift 'm-1=a b'"
    assert (
        describe_allowed(drift, Seq(3))
        == "on tape as exchange 3 but for model and seed; allowed: m-1=a b"
    )


# ---- properties ---------------------------------------------------------------------------------------


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List every place of a value."""
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [place, *(found for key, one in items for found in leaves(one, (*place, key)))]


def root_of(place: str) -> str:
    """Give the value that drifts as a whole: all tools, or one message, or the place itself."""
    if place.startswith(("messages.0.", "input.0.")):
        return place.rpartition(".")[0]
    return place.partition(".0.")[0].removesuffix(".parts")


def is_drift_place(name: str, place: tuple[str | int, ...]) -> bool:
    """Say whether a place is in a value that may drift, or is an object that holds some."""
    told = ".".join(map(str, place))
    return any(
        f"{told}.".startswith(f"{root}.")
        or (root.startswith(f"{told}.") and told not in ("messages", "input"))
        for root in map(root_of, FORMATS[name][2].values())
    )


@given(st.data())
@MANY
def test_one_change_outside_of_the_fields_is_never_drift(data: st.DataObject) -> None:
    """Whatever the format, the place and the value, and also where fields drift besides."""
    name = data.draw(st.sampled_from(sorted(FORMATS)))
    body = copy.deepcopy(FORMATS[name][1])
    places = [place for place in leaves(body) if place and not is_drift_place(name, place)]
    place = data.draw(st.sampled_from(places or [("new",)]))
    value = data.draw(
        st.sampled_from([None, True, 0, 1.5, "", "x", [], {}, ["x"], {"role": "user"}, ...])
    )
    outer = body
    for step in place[:-1]:
        outer = outer[step]
    before = outer.get(place[-1], ...) if isinstance(outer, dict) else outer[place[-1]]
    if value == before and type(value) is type(before):
        return
    if value is ...:
        del outer[place[-1]]
    else:
        outer[place[-1]] = value
    assert compare(ask(name), ask(name, body=body)) is None
    for field, spot in FORMATS[name][2].items():
        drifted = ask(name, body=put(FORMATS[name][1], spot, OTHER[field]))
        assert compare(drifted, ask(name, body=body)) is None


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=9), x),
        max_leaves=20,
    )
)
@MANY
def test_any_body_is_taken_apart_or_is_not(body: Any) -> None:
    """Nothing raises, and a request has not drifted from itself."""
    for name in ("openai-chat", "gemini", "bedrock-invoke chat"):
        whole = ask(name, body={**body, "messages": [body]} if isinstance(body, dict) else body)
        assert compare(whole, whole) is None
        drift_differences(whole, ask(name), RULES)
