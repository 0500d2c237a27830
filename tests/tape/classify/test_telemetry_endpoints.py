"""Which requests are telemetry: ingest endpoints by method and path, and nothing else at the same hosts."""

import pytest

from playhead.config import Classes, parse_match
from playhead.tape.classify.by_method_and_url import classify
from playhead.tape.classify.telemetry_endpoints import (
    TELEMETRY_ENDPOINTS,
    is_telemetry_tunnel,
)
from playhead.tape.exchange import RequestClass
from playhead.tests.tape.classify.test_by_method_and_url import class_of

READ, EFFECT, TELEMETRY = RequestClass.READ, RequestClass.EFFECT, RequestClass.TELEMETRY

TABLE = [
    # Agent CLIs
    ("POST https://api.anthropic.com/api/event_logging/v2/batch", TELEMETRY),
    ("POST https://api.anthropic.com/api/event_logging/batch", TELEMETRY),
    ("POST https://api.anthropic.com/api/eval/sdk-zAZezfDKGoZuXXKe", TELEMETRY),
    ("POST https://api.anthropic.com/api/claude_code/metrics", TELEMETRY),
    ("DELETE https://api.anthropic.com/api/event_logging/v2/batch", EFFECT),
    ("POST https://api.anthropic.com/api/evaluations", EFFECT),
    ("POST https://event_logging.example.com/api/other", EFFECT),
    ("POST https://play.googleapis.com/log?format=json&hasfast=true", TELEMETRY),
    ("POST https://play.googleapis.com/log/batch", TELEMETRY),
    ("POST https://play.googleapis.com/logout", EFFECT),
    ("DELETE https://play.googleapis.com/log", EFFECT),
    ("POST https://gb4w8c3ygj-default-sea.rum.aliyuncs.com/", TELEMETRY),
    ("POST https://gb4w8c3ygj-default-sea.rum.aliyuncs.com/?workspace=a", TELEMETRY),
    ("POST https://proj-xtrace-1.cn-hangzhou.rum.aliyuncs.com/RUM/web/V1/x", TELEMETRY),
    ("DELETE https://gb4w8c3ygj-default-sea.rum.aliyuncs.com/apps/7", EFFECT),
    ("POST https://oss-cn-hangzhou.aliyuncs.com/", EFFECT),
    # OpenTelemetry: its ports, its gRPC service, hosts that collect; at other hosts the body decides (`test_telemetry_bodies.py`)
    ("POST https://ab.chatgpt.com/otlp/v1/metrics", TELEMETRY),
    ("POST https://gateway.example.com/collect/otlp/v1/traces", EFFECT),
    ("POST https://gateway.example.com/otlp/v1/logs", EFFECT),
    ("POST https://otel.example.com/v1/logs", EFFECT),
    ("POST https://gateway.example.com/otlp/v1/invoices", EFFECT),
    ("PUT https://gateway.example.com/otlp/v1/traces", EFFECT),
    ("GET https://gateway.example.com/otlp/v1/traces", READ),
    ("POST https://gateway.example.com/notlp/v1/traces", EFFECT),
    ("POST http://localhost:4318/v1/traces", TELEMETRY),
    ("POST http://localhost:4318/v1/orders", EFFECT),
    ("POST https://api.honeycomb.io/v1/metrics", TELEMETRY),
    ("POST https://otlp.eu01.nr-data.net/v1/logs", TELEMETRY),
    ("POST https://api.example.com/v1/logs", EFFECT),
    ("POST http://x:4317/opentelemetry.proto.collector.trace.v1.TraceService/Export", TELEMETRY),
    ("POST http://x:4317/shop.v1.Orders/Export", EFFECT),
    # Traces of agents
    ("POST https://api.openai.com/v1/traces/ingest", TELEMETRY),
    ("GET https://api.openai.com/v1/traces/ingest", READ),
    ("POST https://api.example.com/v1/traces/ingest", EFFECT),
    ("POST https://api.smith.langchain.com/runs", TELEMETRY),
    ("POST https://api.smith.langchain.com/runs/batch", TELEMETRY),
    ("POST https://api.smith.langchain.com/runs/multipart", TELEMETRY),
    ("POST https://eu.api.smith.langchain.com/api/v1/runs/multipart", TELEMETRY),
    ("PATCH https://eu.api.smith.langchain.com/runs/1", TELEMETRY),
    ("POST https://api.smith.langchain.com/otel/v1/traces", TELEMETRY),
    ("GET https://api.smith.langchain.com/info", TELEMETRY),
    ("GET https://api.smith.langchain.com/commits/a/b/latest", READ),
    ("GET https://api.smith.langchain.com/runs/1", READ),
    ("POST https://api.smith.langchain.com/runs/query", READ),
    ("POST https://api.smith.langchain.com/runs/rules", EFFECT),
    ("DELETE https://api.smith.langchain.com/runs/1", EFFECT),
    ("POST https://api.smith.langchain.com/api/v1/datasets", EFFECT),
    ("POST https://cloud.langfuse.com/api/public/ingestion", TELEMETRY),
    ("POST https://cloud.langfuse.com/api/public/otel/v1/traces", TELEMETRY),
    ("POST https://langfuse.example.com/api/public/ingestion", EFFECT),
    ("GET https://cloud.langfuse.com/api/public/v2/prompts/a", READ),
    ("POST https://cloud.langfuse.com/api/public/scores", EFFECT),
    ("DELETE https://cloud.langfuse.com/api/public/traces/1", EFFECT),
    ("POST https://telemetry.crewai.com:4319/v1/traces", TELEMETRY),
    ("POST https://telemetry.crewai.com/v1/traces", TELEMETRY),
    ("DELETE https://telemetry.crewai.com/7", EFFECT),
    ("POST https://telemetry.crewai.com:4319/v1/crews", EFFECT),
    # Product analytics
    ("POST https://us.i.posthog.com/batch/", TELEMETRY),
    ("POST https://app.posthog.com/capture/", TELEMETRY),
    ("POST https://eu.i.posthog.com/i/v0/e/?ip=1", TELEMETRY),
    ("POST https://us.i.posthog.com/flags/?v=2", READ),
    ("POST https://us.i.posthog.com/decide/?v=3", READ),
    ("POST https://data.cline.bot/flags/?v=2", READ),
    ("DELETE https://app.posthog.com/api/projects/1/feature_flags/7", EFFECT),
    ("POST https://app.posthog.com/api/projects/1/feature_flags", EFFECT),
    ("POST https://statsigapi.net/v1/rgstr", TELEMETRY),
    ("POST https://events.statsigapi.net/v1/log_event", TELEMETRY),
    ("POST https://statsig.anthropic.com/v1/rgstr?k=client", TELEMETRY),
    ("POST https://statsigapi.net/v1/sdk_exception", TELEMETRY),
    ("POST https://statsig.anthropic.com/v1/initialize?k=client", READ),
    ("POST https://api.statsig.com/v1/check_gate", READ),
    ("POST https://statsigapi.net/v1/get_config", READ),
    ("GET https://api.statsigcdn.com/v1/download_config_specs/secret.json", READ),
    ("DELETE https://statsigapi.net/v1/gates/7", EFFECT),
    ("POST https://statsigapi.net/console/v1/gates", EFFECT),
    ("POST https://api.segment.io/v1/batch", TELEMETRY),
    ("POST https://api.segment.io/v1/t", TELEMETRY),
    ("POST https://events.eu1.segmentapis.com/v1/batch", TELEMETRY),
    ("GET https://cdn-settings.segment.com/v1/projects/w/settings", TELEMETRY),
    ("GET https://cdn.segment.com/v1/projects/w/settings", TELEMETRY),
    ("POST https://api.segment.io/v1/identify", EFFECT),
    ("POST https://api.segment.io/v1/i", EFFECT),
    ("POST https://api.segment.io/v1/alias", EFFECT),
    ("POST https://api.segmentapis.com/regulations", EFFECT),
    ("POST https://crm.example.com/v1/identify", EFFECT),
    ("POST https://crm.example.com/v1/t", EFFECT),
    ("POST https://segment.example.com/v1/batch", EFFECT),
    ("POST https://api2.amplitude.com/2/httpapi", TELEMETRY),
    ("POST https://api.eu.amplitude.com/batch", TELEMETRY),
    ("POST https://api2.amplitude.com/identify", EFFECT),
    ("POST https://api2.amplitude.com/groupidentify", EFFECT),
    ("POST https://amplitude.com/api/2/cohorts/upload", EFFECT),
    ("POST https://api.mixpanel.com/track/?verbose=1", TELEMETRY),
    ("POST https://api.mixpanel.com/import?strict=1", TELEMETRY),
    ("POST https://api-eu.mixpanel.com/engage#profile-set", EFFECT),
    ("POST https://api.mixpanel.com/engage/", EFFECT),
    ("POST https://api.mixpanel.com/groups", EFFECT),
    ("POST https://eu.i.posthog.com/engage/", EFFECT),
    ("DELETE https://api.mixpanel.com/track", EFFECT),
    ("POST https://crm.example.com/engage", EFFECT),
    ("POST https://api.example.com/track", EFFECT),
    ("POST https://api-admin.mixpanel.com/import", EFFECT),
    # Errors and logs
    ("POST https://o1.ingest.us.sentry.io/api/1/envelope/", TELEMETRY),
    ("POST https://o1.ingest.sentry.io/api/1/store/", TELEMETRY),
    ("POST https://sentry.example.com/api/4/envelope/", EFFECT),
    ("POST https://sentry.io/api/0/organizations/o/issues/7/comments/", EFFECT),
    ("DELETE https://sentry.io/api/0/projects/o/p/", EFFECT),
    ("POST https://sign.example.com/api/4/envelope/", EFFECT),
    ("POST https://http-intake.logs.datadoghq.com/api/v2/logs", TELEMETRY),
    ("POST https://http-intake.logs.us5.datadoghq.com/api/v2/logs", TELEMETRY),
    ("POST https://browser-intake-us5-datadoghq.com/api/v2/rum?ddsource=x", TELEMETRY),
    ("POST https://llmobs-intake.datadoghq.eu/api/v2/llmobs", TELEMETRY),
    (
        "POST https://instrumentation-telemetry-intake.datadoghq.com/api/v2/apmtelemetry",
        TELEMETRY,
    ),
    ("POST https://trace.agent.datadoghq.com/api/v0.2/traces", TELEMETRY),
    ("PUT http://localhost:8126/v0.5/traces", TELEMETRY),
    ("POST http://localhost:8126/evp_proxy/v2/api/v2/llmobs", TELEMETRY),
    ("DELETE http://localhost:8126/v0.5/traces", EFFECT),
    ("POST https://api.datadoghq.com/api/v1/monitor", EFFECT),
    ("DELETE https://http-intake.logs.datadoghq.com/api/v2/logs", EFFECT),
    ("POST https://telemetry.nextjs.org/api/v1/record", TELEMETRY),
    ("POST https://telemetry.nextjs.org/api/v1/other", EFFECT),
    # Update checks of runtimes and CLIs, at whichever registry they ask
    ("GET https://registry.example.com/@openai%2fcodex", TELEMETRY),
    ("GET https://registry.example.com/@openai/codex", TELEMETRY),
    ("GET https://registry.example.com/@google%2fgemini-cli", TELEMETRY),
    ("GET https://registry.example.com/@qwen-code%2Fqwen-code", TELEMETRY),
    ("GET https://registry.example.com/@anthropic-ai/claude-code/latest", TELEMETRY),
    ("GET https://registry.example.com/-/package/@anthropic-ai/claude-code/dist-tags", TELEMETRY),
    ("GET https://registry.example.com/opencode-ai/latest", TELEMETRY),
    ("GET https://registry.example.com/npm", TELEMETRY),
    ("GET https://registry.example.com/express", READ),
    ("GET https://registry.example.com/@openai/codex/-/codex-0.169.0.tgz", READ),
    ("PUT https://registry.example.com/@openai%2fcodex", EFFECT),
    ("GET https://pypi.example.com/pypi/aider-chat/json", TELEMETRY),
    ("GET https://index.example.com/pypi/aider-chat/json", READ),
    ("GET https://pypi.example.com/pypi/requests/json", READ),
    ("PUT https://pypi.example.com/pypi/aider-chat/json", EFFECT),
    ("GET https://index.example.com/simple/pip/", TELEMETRY),
    ("GET https://index.example.com/simple/requests/", READ),
    ("GET https://api.github.com/repos/openai/codex/releases/latest", TELEMETRY),
    ("GET https://api.github.com/repos/cli/cli/releases/latest", TELEMETRY),
    ("GET https://api.github.com/repos/acme/shop/releases/latest", READ),
    ("GET https://api.github.com/repos/openai/codex/issues", READ),
    ("GET https://raw.githubusercontent.com/openai/codex/main/announcement_tip.toml", TELEMETRY),
    ("GET https://downloads.claude.ai/claude-code-releases/latest", TELEMETRY),
    ("GET https://downloads.claude.ai/claude-code-releases/2.1.0/linux-x64/claude", READ),
    (
        "GET https://raw.githubusercontent.com/anthropics/claude-code/refs/heads/main/CHANGELOG.md",
        TELEMETRY,
    ),
    ("GET https://dl.deno.land/release-latest.txt", TELEMETRY),
    ("GET https://checkpoint-api.hashicorp.com/v1/check/terraform", TELEMETRY),
    ("GET https://pypi.example.com/pypi/browser-use/json", TELEMETRY),
    ("GET https://api.github.com/repos/github/copilot-cli/releases?per_page=100", TELEMETRY),
    ("GET https://api.github.com/repos/github/copilot-cli/issues", READ),
    # Chromium
    ("POST http://update.googleapis.com/service/update2/json?cup2key=a:b", TELEMETRY),
    ("DELETE http://update.googleapis.com/service/update2/json", EFFECT),
    ("GET http://clients2.google.com/time/1/current?cup2key=a:b", TELEMETRY),
    ("GET https://clients2.google.com/service/update2/crx?response=redirect", READ),
    ("GET https://raw.githubusercontent.com/BerriAI/litellm/main/prices.json", TELEMETRY),
    ("GET https://raw.githubusercontent.com/other/repo/main/x.json", READ),
    ("HEAD https://huggingface.co/api/telemetry/transformers/4", TELEMETRY),
    ("GET https://huggingface.co/api/models/x", READ),
]


@pytest.mark.parametrize(("request_line", "expected"), TABLE)
def test_telemetry_is_an_ingest_endpoint(request_line: str, expected: RequestClass) -> None:
    """A method and a path are telemetry; what else is asked of the same host is what it is."""
    assert class_of(request_line) is expected


def test_no_entry_is_a_whole_host() -> None:
    """Every entry says which methods and which path it means, and none of them deletes anything."""
    for text in TELEMETRY_ENDPOINTS:
        match = parse_match(text)
        assert match.methods, text
        assert match.methods <= {"GET", "HEAD", "POST", "PUT", "PATCH"}, text
        assert match.path.strip("*/") or match.path == "/", text


TUNNELS = [
    ("telemetry.crewai.com", 4319, True),
    ("telemetry.crewai.com", 443, True),
    ("o1.ingest.us.sentry.io", 443, True),
    ("play.googleapis.com", 443, True),
    ("gb4w8c3ygj-default-sea.rum.aliyuncs.com", 443, True),
    ("http-intake.logs.us5.datadoghq.com", 443, True),
    ("events.statsigapi.net", 443, True),
    ("statsig.anthropic.com", 443, True),
    ("ab.chatgpt.com", 443, True),
    ("us.i.posthog.com", 443, True),
    ("update.googleapis.com", 443, True),
    ("clients2.google.com", 443, False),
    ("api.smith.langchain.com", 443, True),
    ("cloud.langfuse.com", 443, True),
    ("api.segment.io", 443, True),
    ("api2.amplitude.com", 443, True),
    ("collector.example.com", 4318, True),
    ("collector.example.com", 4317, True),
    ("otlp.eu01.nr-data.net", 443, True),
    # Hosts of which other things are asked, too
    ("api.anthropic.com", 443, False),
    ("api.openai.com", 443, False),
    ("app.posthog.com", 443, False),
    ("sentry.io", 443, False),
    ("api.datadoghq.com", 443, False),
    ("api.github.com", 443, False),
    ("crm.example.com", 443, False),
]


@pytest.mark.parametrize(("host", "port", "expected"), TUNNELS)
def test_a_tunnel_is_telemetry_where_little_else_is_asked(
    host: str, port: int, expected: bool
) -> None:
    """A tunnel that failed has no path: it is telemetry where the host takes little else."""
    assert is_telemetry_tunnel(host, port, Classes()) is expected


def test_a_tunnel_to_a_host_of_the_configuration_is_telemetry() -> None:
    """A pattern of `classes.telemetry` that means all of a host means its tunnels, too; one with a path does not."""
    classes = Classes(
        telemetry=(parse_match("*://a.example"), parse_match("POST *://b.example/t/*"))
    )
    assert is_telemetry_tunnel("a.example", 443, classes)
    assert not is_telemetry_tunnel("b.example", 443, classes)
    assert classify("CONNECT", "https", "a.example", 443, "", classes).of is TELEMETRY
