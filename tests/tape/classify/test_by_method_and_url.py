"""What kind of call a request is."""

from urllib.parse import urlsplit

import pytest

from playhead.config import Classes, parse_match
from playhead.config.targets.request_interpretations import ANY_METHOD, More, find_ways
from playhead.tape.classify.by_method_and_url import classify, classify_ways
from playhead.tape.classify.model_apis import MODEL_APIS
from playhead.tape.dialects import DIALECTS
from playhead.tape.exchange import RequestClass

INFERENCE, READ, EFFECT, TELEMETRY = (
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.EFFECT,
    RequestClass.TELEMETRY,
)


def class_of(text: str, classes: Classes | None = None) -> RequestClass:
    """Classify a request written as `METHOD URL`."""
    method, url = text.split()
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return classify(
        method, parts.scheme, parts.hostname or "", port, target, classes or _NO_CLASSES
    ).of


_NO_CLASSES = Classes()

TABLE = [
    # OpenAI and what speaks it, on any host
    ("POST https://api.openai.com/v1/chat/completions", INFERENCE),
    ("POST https://api.openai.com/v1/responses", INFERENCE),
    ("POST https://api.openai.com/v1/embeddings", INFERENCE),
    ("POST https://api.openai.com/v1/images/generations", INFERENCE),
    ("POST https://api.openai.com/v1/audio/speech", INFERENCE),
    ("POST https://api.openai.com/v1/moderations", INFERENCE),
    ("POST http://127.0.0.1:4000/v1/chat/completions", INFERENCE),
    ("POST https://me.openai.azure.com/openai/deployments/x/chat/completions?a=1", INFERENCE),
    ("POST https://openrouter.ai/api/v1/chat/completions", INFERENCE),
    ("POST https://api.groq.com/openai/v1/chat/completions", INFERENCE),
    ("POST https://api.together.xyz/v1/completions", INFERENCE),
    ("POST https://api.deepseek.com/chat/completions", INFERENCE),
    ("POST https://api.mistral.ai/v1/fim/completions", INFERENCE),
    ("GET https://api.openai.com/v1/realtime?model=x", INFERENCE),
    ("GET https://api.openai.com/v1/models", READ),
    ("GET https://api.openai.com/v1/responses/resp_1", READ),
    ("DELETE https://api.openai.com/v1/responses/resp_1", EFFECT),
    ("POST https://api.openai.com/v1/responses/resp_1/cancel", EFFECT),
    ("POST https://api.openai.com/v1/files", EFFECT),
    ("POST https://api.openai.com/v1/fine_tuning/jobs", EFFECT),
    ("POST https://api.groq.com/openai/v1/batches", EFFECT),
    # Anthropic
    ("POST https://api.anthropic.com/v1/messages", INFERENCE),
    ("POST https://api.anthropic.com/v1/messages?beta=true", INFERENCE),
    ("POST https://api.anthropic.com/v1/messages/count_tokens", INFERENCE),
    ("POST https://api.anthropic.com/v1/messages/batches", EFFECT),
    ("POST https://api.anthropic.com/v1/complete", INFERENCE),
    # ... but not what sends messages to people
    ("POST https://api.nexmo.com/v1/messages", EFFECT),
    ("POST https://slack.com/api/chat.postMessage", EFFECT),
    ("POST https://api.twilio.com/2010-04-01/Accounts/A/Messages.json", EFFECT),
    # Gemini and Vertex
    ("POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent", INFERENCE),
    ("POST https://generativelanguage.googleapis.com/v1beta/models/g:countTokens", INFERENCE),
    (
        "POST https://x-aiplatform.googleapis.com/v1/p/models/g:streamGenerateContent?alt=sse",
        INFERENCE,
    ),
    ("POST https://x-aiplatform.googleapis.com/v1/p/endpoints/1:predict", INFERENCE),
    ("POST https://weather.example.com/v1/rain:predict", EFFECT),
    ("POST https://storage.googleapis.com/upload/storage/v1/b/x/o", EFFECT),
    # Over a WebSocket
    ("GET https://api.openai.com/v1/realtime?model=gpt-realtime", INFERENCE),
    ("GET https://api.openai.com/v1/responses", INFERENCE),
    ("GET https://api.openai.com/v1/responses/resp_1", READ),
    ("GET https://x.openai.azure.com/openai/realtime?deployment=d", INFERENCE),
    ("GET https://chatgpt.com/backend-api/codex/responses", INFERENCE),
    ("POST https://gateway.example.com/codex/responses", INFERENCE),
    ("POST https://api.githubcopilot.com/responses", INFERENCE),
    ("POST https://survey.example.com/responses", EFFECT),
    ("POST https://api.mistral.ai/v1/conversations", INFERENCE),
    ("POST https://api.mistral.ai/v1/conversations/conv_1#stream", INFERENCE),
    (
        "GET https://generativelanguage.googleapis.com/ws/"
        "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k",
        INFERENCE,
    ),
    # Bedrock
    ("POST https://bedrock-runtime.eu-west-1.amazonaws.com/model/a.b-v1%3A0/converse", INFERENCE),
    ("POST https://bedrock-runtime.us-east-1.amazonaws.com/model/a/invoke", INFERENCE),
    ("POST https://bedrock.us-east-1.amazonaws.com/custom-models", EFFECT),
    ("POST https://dynamodb.us-east-1.amazonaws.com/", EFFECT),
    # Ollama
    ("POST http://localhost:11434/api/chat", INFERENCE),
    ("POST http://ollama:11434/api/generate", INFERENCE),
    ("POST http://127.0.0.1:9999/api/embed", INFERENCE),
    ("POST http://[::1]:11434/api/embeddings", INFERENCE),
    ("GET http://localhost:11434/api/tags", READ),
    ("POST https://shop.example.com/api/chat", EFFECT),
    # Others
    ("POST https://api.cohere.com/v2/chat", INFERENCE),
    ("POST https://api.cohere.ai/v1/rerank", INFERENCE),
    ("POST https://api.voyageai.com/v1/embeddings", INFERENCE),
    # Model calls and settings of the hosts to which agent CLIs send telemetry, too
    ("GET https://api.anthropic.com/api/claude_code/settings", READ),
    ("GET https://api.anthropic.com/v1/models", READ),
    ("POST https://api.anthropic.com/v1/files", EFFECT),
    ("POST https://play.googleapis.com/androidpublisher/v3/edits", EFFECT),
    ("POST https://ab.chatgpt.com/v1/refunds", EFFECT),
    # Searches
    ("POST https://es.example.com:9200/logs/_search?size=1", READ),
    ("POST http://localhost:9200/_msearch", READ),
    ("POST http://localhost:9200/a,b/_count", READ),
    ("POST http://localhost:9200/_search/scroll", READ),
    ("POST http://localhost:9200/logs/_doc", EFFECT),
    ("POST http://localhost:9200/logs/_update_by_query", EFFECT),
    ("POST http://localhost:9200/logs/_delete_by_query", EFFECT),
    ("POST http://localhost:9200/_bulk", EFFECT),
    ("POST https://example.com/my_search", EFFECT),
    ("POST http://localhost:6333/collections/docs/points/search", READ),
    ("POST http://localhost:6333/collections/docs/points/query/batch", READ),
    ("POST http://localhost:6333/collections/docs/points/scroll", READ),
    ("PUT http://localhost:6333/collections/docs/points", EFFECT),
    ("POST http://localhost:6333/collections/docs/points/delete", EFFECT),
    ("POST http://localhost:8000/api/v2/tenants/t/databases/d/collections/c/query", READ),
    ("POST http://localhost:8000/api/v1/collections/c/add", EFFECT),
    ("POST http://localhost:19530/v2/vectordb/entities/search", READ),
    ("POST http://localhost:19530/v2/vectordb/entities/insert", EFFECT),
    ("POST https://docs-abc.svc.us-east1-gcp.pinecone.io/query", READ),
    ("POST https://docs-abc.svc.us-east1-gcp.pinecone.io/vectors/upsert", EFFECT),
    ("POST https://example.com/query", EFFECT),
    ("POST https://api.openai.com/v1/vector_stores/vs_1/search", READ),
    ("POST https://api.openai.com/v1/vector_stores", EFFECT),
    ("POST https://x-dsn.algolia.net/1/indexes/products/query", READ),
    ("POST https://x.algolia.net/1/indexes/products/batch", EFFECT),
    ("POST https://x.search.windows.net/indexes/hotels/docs/search?api-version=1", READ),
    ("POST https://x.search.windows.net/indexes/hotels/docs/index?api-version=1", EFFECT),
    ("POST https://api.tavily.com/search", READ),
    ("POST https://api.exa.ai/research/v1", EFFECT),
    ("POST https://google.serper.dev/news", READ),
    ("POST https://api.notion.com/v1/search", READ),
    ("POST https://api.notion.com/v1/databases/1f/query", READ),
    ("POST https://api.notion.com/v1/pages", EFFECT),
    ("POST https://api.hubapi.com/crm/v3/objects/contacts/search", READ),
    ("POST https://api.hubapi.com/crm/v3/objects/contacts", EFFECT),
    ("POST https://me.atlassian.net/rest/api/3/search/jql", READ),
    ("POST https://me.atlassian.net/rest/api/3/issue", EFFECT),
    ("POST https://graph.microsoft.com/v1.0/search/query", READ),
    # The rest, by method
    ("GET https://api.stripe.com/v1/refunds", READ),
    ("HEAD https://example.com/", READ),
    ("OPTIONS https://example.com/", READ),
    ("POST https://api.stripe.com/v1/refunds", EFFECT),
    ("PUT https://example.com/x", EFFECT),
    ("DELETE https://example.com/x", EFFECT),
    ("BREW https://example.com/x", EFFECT),
    ("get https://example.com/x", EFFECT),
    ("POST https://git.example.com/a/b.git/git-upload-pack", READ),
    ("POST https://git.example.com/a/b.git/git-receive-pack", EFFECT),
]


@pytest.mark.parametrize(("request_line", "expected"), TABLE)
def test_a_request_has_the_class_of_the_table(request_line: str, expected: RequestClass) -> None:
    """Model calls, telemetry and reads are known; everything else may change the world."""
    assert class_of(request_line) is expected


def test_own_patterns_go_first_in_their_order() -> None:
    """Telemetry, inference, effect, read: the first of the configuration's that speaks decides."""
    classes = Classes(
        telemetry=(parse_match("*://a.example/t*"),),
        inference=(parse_match("*://a.example/ti*"), parse_match("*://a.example/i*")),
        effect=(parse_match("*://a.example/ie*"), parse_match("GET *://a.example/e*")),
        read=(parse_match("*://a.example/*"), parse_match("*://*/v1/responses")),
    )
    asked = {
        "GET http://a.example/tie": TELEMETRY,
        "GET http://a.example/ie": INFERENCE,
        "GET http://a.example/e": EFFECT,
        "POST http://a.example/x": READ,
        "POST https://api.openai.com/v1/responses": READ,
        "POST https://api.openai.com/v1/traces/ingest": TELEMETRY,
    }
    assert {line: class_of(line, classes) for line in asked} == asked


def test_a_pattern_that_names_a_query_looks_at_it() -> None:
    """What is remembered for a path does not hide a pattern with a question mark."""
    classes = Classes(read=(parse_match("POST *://*/q?op=get*"),))
    assert class_of("POST http://a.example/q?op=get", classes) is READ
    assert class_of("POST http://a.example/q?op=set", classes) is EFFECT


def test_configurations_do_not_see_each_other() -> None:
    """What was found under one configuration is not said under the next."""
    line = "POST http://a.example/x"
    for of in (READ, EFFECT) * 20:
        classes = Classes(**{of.value: (parse_match("*://a.example"),)})
        assert class_of(line, classes) is of


def test_each_dialect_has_a_row_of_endpoints() -> None:
    """So that who adds a dialect decides what is inference there, and whose prices hold; MCP is no model's."""
    families = {dialect.name.partition("-")[0] for dialect in DIALECTS} - {"mcp"}
    assert families == {api.family for api in MODEL_APIS} - {""}


@pytest.mark.parametrize(
    ("target", "alone", "of"),
    [
        ("https://us.i.posthog.com/batch/", RequestClass.TELEMETRY, RequestClass.EFFECT),
        ("https://search.example/orders/_search", RequestClass.READ, RequestClass.EFFECT),
        ("https://api.openai.com/v1/responses", RequestClass.INFERENCE, RequestClass.INFERENCE),
    ],
)
def test_what_may_have_any_method_is_no_telemetry_and_no_read(
    target: str, alone: RequestClass, of: RequestClass
) -> None:
    """Its body could not be read; a model call may be that large."""
    url = urlsplit(target)
    place = ("POST", url.scheme, str(url.hostname), 443, url.path)
    assert classify_ways(find_ways(*place), Classes()).kind.of is alone
    assert classify_ways(find_ways(*place, More(methods=(ANY_METHOD,))), Classes()).kind.of is of
