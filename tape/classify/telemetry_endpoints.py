"""Which requests are telemetry: the ingest endpoints to which programs report on their own account.

Rules:

1. An entry names methods and a path, never a whole host: the same hosts take flags, settings, searches and deletions, which
   are what their method says.
2. A feature flag that is asked for a user is no telemetry: the answer decides what an agent does.
   What sets or deletes the profile of a user or a group (`engage`, `groups`, `identify`, `alias`) is none either.
3. A GET is in the table only where its answer is shown to a person at most: an update check, an exporter's handshake.
4. Where anybody may run a collector, a path is not enough: `telemetry_bodies.py` looks at the body, too. Here is what its host or
   port tells. Update checks are known by the name of the package and the kind of host, since anybody may run a registry.
5. A tunnel that failed has no path. It is telemetry where its host and port take little else: nothing was answered through it that
   an agent could act on, and how often an exporter tries again is a matter of time.

Source: requests of the programs named, as recorded (2026-11); the installed packages of Codex 0.169, Claude Code 2.1.197,
Gemini CLI 0.61, Qwen Code 0.15.10, opencode 1.18, Cline 3.0, Copilot CLI 1.0 and Chromium; the ingest pages of the services.
"""

from ...config.match_pattern import parse_match
from ...config.schema import Classes

_SIGNALS = ("traces", "metrics", "logs")

_AGENT_CLIS = (
    "POST *://api.anthropic.com/api/event_logging/*",
    "POST *://api.anthropic.com/api/eval/*",
    "POST *://api.anthropic.com/api/claude_code/metrics",
    "POST *://play.googleapis.com/log",
    "POST *://play.googleapis.com/log/*",
    "POST *://*.rum.aliyuncs.com/",
    "POST *://*.rum.aliyuncs.com/RUM/*",
)

_OPENTELEMETRY = (
    # Its own port, its gRPC service, its signals on hosts that collect them
    *(f"POST *://*:4318/*v1/{signal}" for signal in _SIGNALS),
    "POST *://*/opentelemetry.proto.collector.*",
    *(
        f"POST *://{host}/*v1/{signal}"
        for host in (
            "ab.chatgpt.com",
            "*.honeycomb.io",
            "*.grafana.net",
            "*.nr-data.net",
            "*.signoz.cloud",
            "*.arize.com",
            "*.traceloop.com",
            "*.braintrust.dev",
            "*.langfuse.com",
            "*.pydantic.dev",
            "*.logfire.dev",
            "*.axiom.co",
            "*.lightstep.com",
            "*.dynatrace.com",
            "*.uptrace.dev",
        )
        for signal in _SIGNALS
    ),
    # CrewAI reports over port 4319
    "POST *://telemetry.crewai.com/v1/traces",
)

_AGENT_TRACES = (
    # OpenAI Agents SDK: from a thread of its own.
    "POST *://api.openai.com/v1/traces/ingest",
    # LangSmith
    *(
        f"{method} *://*.smith.langchain.com{prefix}/{path}"
        for prefix in ("", "/api/v1")
        for method, path in (
            ("POST", "runs"),
            ("POST", "runs/batch"),
            ("POST", "runs/multipart"),
            ("PATCH", "runs/*"),
            ("POST", "otel/v1/traces"),
            ("GET,HEAD", "info"),
        )
    ),
    "POST *://*.langfuse.com/api/public/ingestion",
)

_STATSIG_HOSTS = (
    "*statsigapi.net",
    "*.statsig.com",
    "statsig.anthropic.com",
    "*featuregates.org",
    "*prodregistryv2.org",
)
_SEGMENT_CALLS = ("batch", "track", "page", "screen")
_DATADOG_TRACKS = (
    *("logs", "spans", "rum", "replay", "profile", "llmobs", "apmtelemetry", "exlog"),
    *("citestcycle", "citestcov", "debugger", "eventplatform", "dsmstats"),
)

_ANALYTICS = (
    # PostHog
    *(
        f"POST *://*.posthog.com/{call}"
        for call in ("batch", "batch/", "capture", "capture/", "e", "e/", "i/*", "s", "s/")
    ),
    *(f"POST *://*.posthog.com/{call}" for call in ("track", "track/")),
    # Statsig
    *(
        f"POST *://{host}/v1/{call}"
        for host in _STATSIG_HOSTS
        for call in ("rgstr", "log_event", "log_custom_exposure", "sdk_exception")
    ),
    # Segment
    *(
        f"POST *://{host}/v1/{call}"
        for host in ("*.segment.io", "*.segmentapis.com")
        for call in (*_SEGMENT_CALLS, *"btps")
    ),
    "GET *://cdn-settings.segment.com/v1/projects/*/settings",
    "GET *://cdn.segment.com/v1/projects/*/settings",
    # Amplitude, Mixpanel
    *(f"POST *://*.amplitude.com/{call}" for call in ("2/httpapi", "batch")),
    *(
        f"POST *://{host}.mixpanel.com/{call}"
        for host in ("api", "api-eu", "api-in", "api-js")
        for call in ("track", "track/", "import", "import/")
    ),
    # Next.js; Hugging Face counts downloads
    "POST *://telemetry.nextjs.org/api/v1/record",
    "GET,HEAD *://huggingface.co/api/telemetry/*",
)

_ERRORS_AND_LOGS = (
    # Sentry
    *(
        f"POST *://*.sentry.io/api/*/{call}"
        for call in ("envelope", "envelope/", "store", "store/", "minidump", "minidump/")
    ),
    # Datadog: intake, and the agent on its own port
    *(
        f"POST *://{host}/api/v2/{track}"
        for host in ("*-intake.*datadoghq.*", "*-intake-*datadoghq.*", "intake.*datadoghq.*")
        for track in _DATADOG_TRACKS
    ),
    "POST *://*-intake.*datadoghq.*/v1/input*",
    "POST *://intake.*datadoghq.*/v1/input*",
    *(f"POST *://*.agent.*datadoghq.*/api/v0.*/{call}" for call in ("traces", "stats")),
    "POST *://*.agent.*datadoghq.*/intake/",
    "POST,PUT *://*:8126/v0.*",
    "POST *://*:8126/telemetry/proxy/*",
    "POST *://*:8126/evp_proxy/*",
    "GET *://*:8126/info",
)

_CLI_PACKAGES = (
    *("@openai/codex", "@google/gemini-cli", "@qwen-code/qwen-code", "@anthropic-ai/claude-code"),
    *("opencode-ai", "npm", "pnpm"),
)
_CLI_REPOSITORIES = (
    *("openai/codex", "google-gemini/gemini-cli", "QwenLM/qwen-code", "anthropics/claude-code"),
    *("sst/opencode", "anomalyco/opencode", "cli/cli", "denoland/deno", "oven-sh/bun"),
    "Jarred-Sumner/bun-releases-for-updater",
)

_UPDATE_CHECKS = (
    *(
        f"GET *://{host}/{path}"
        for host in ("registry.*",)
        for package in _CLI_PACKAGES
        for path in (
            package,
            *((package.replace("/", "*"),) if "/" in package else ()),
            f"{package}/latest",
            f"-/package/{package}/dist-tags",
        )
    ),
    *(
        f"GET *://pypi.*/pypi/{package}/json"
        for package in ("aider-chat", "litellm", "crewai", "browser-use")
    ),
    "GET *://*/simple/pip/",
    *(f"GET *://api.github.com/repos/{name}/releases/latest" for name in _CLI_REPOSITORIES),
    "GET *://raw.githubusercontent.com/openai/codex/main/announcement_tip.toml",
    "GET *://raw.githubusercontent.com/anthropics/claude-code/refs/heads/main/CHANGELOG.md",
    *(f"GET *://downloads.claude.ai/claude-code-releases/{name}" for name in ("latest", "stable")),
    "GET *://dl.deno.land/release-latest.txt",
    "GET *://checkpoint-api.hashicorp.com/v1/check/*",
    "GET *://checkpoint.prisma.io/api/v1/check/*",
    "GET *://api.github.com/repos/github/copilot-cli/releases",
    # Chromium: updates of its components and extensions, and its clock, by which it judges certificates.
    "POST *://update.googleapis.com/service/update2/json",
    "GET *://clients2.google.com/time/1/current",
    # LiteLLM reads its price list when it is imported.
    "GET,HEAD *://raw.githubusercontent.com/BerriAI/litellm/*",
)

TELEMETRY_ENDPOINTS = (
    *_AGENT_CLIS,
    *_OPENTELEMETRY,
    *_AGENT_TRACES,
    *_ANALYTICS,
    *_ERRORS_AND_LOGS,
    *_UPDATE_CHECKS,
)
"""Match patterns of requests that are telemetry."""

ASKED_FOR_A_USER = (
    *(f"POST *://*.posthog.com/{call}*" for call in ("flags", "decide")),
    # PostHog under a name of Cline's
    "POST *://data.cline.bot/flags*",
    *(
        f"POST *://{host}/v1/{call}"
        for host in _STATSIG_HOSTS
        for call in ("initialize", "check_gate", "get_config", "get_layer", "get_id_lists")
    ),
    *(f"POST *://*.smith.langchain.com{prefix}/runs/query" for prefix in ("", "/api/v1")),
)
"""Questions that are asked by POST of the same hosts: reads, whose answers an agent acts on."""

_LITTLE_ELSE = tuple(
    parse_match(text)
    for text in (
        "*://*:4317",
        "*://*:4318",
        "*://*:8126",
        "*://telemetry.crewai.com",
        "*://telemetry.nextjs.org",
        "*://play.googleapis.com",
        "*://ab.chatgpt.com",
        "*://*.rum.aliyuncs.com",
        "*://otlp.*",
        "*://otel.*",
        "*://*.ingest.sentry.io",
        "*://*.ingest.*.sentry.io",
        "*://*-intake.*datadoghq.*",
        "*://*-intake-*datadoghq.*",
        "*://*.agent.*datadoghq.*",
        *("*://*.i.posthog.com", "*://*.smith.langchain.com", "*://*.langfuse.com"),
        *("*://*statsigapi.net", "*://statsig.anthropic.com"),
        "*://prodregistryv2.org",
        "*://api.segment.io",
        "*://events.*.segmentapis.com",
        "*://cdn-settings.segment.com",
        *("*://api.amplitude.com", "*://api2.amplitude.com", "*://api.eu.amplitude.com"),
        *("*://api.mixpanel.com", "*://api-*.mixpanel.com"),
        "*://checkpoint-api.hashicorp.com",
        "*://update.googleapis.com",
    )
)
"""Places of which little but telemetry is asked."""


def is_telemetry_tunnel(host: str, port: int, classes: Classes) -> bool:
    """Say whether a tunnel to a host and port is for telemetry."""
    if any(match.matches("CONNECT", "https", host, port, "") for match in _LITTLE_ELSE):
        return True
    whole = (match for match in classes.telemetry if match.path in ("", "/*") and match.host != "*")
    return any(
        match.matches(next(iter(match.methods), "POST"), "https", host, port, "/")
        for match in whole
    )
