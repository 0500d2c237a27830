"""The shipped lists of header fields: noise, reported, decisive.

A field in none of the lists is decisive: a refused request can be explained, a stale answer cannot be noticed. Each entry
of noise and of what is reported names the client that needs it. Names are literal; a family stands only where every
name of it was measured or is drawn from a closed format. `*-id`, `*-version`, `x-amz-*`, `x-ms-*` and `x-goog-*` are no
families: they hold tenants, copy sources and ranges.

Source: 113 pairs of recordings of unchanged clients and agents, 182 names, of which 41 differed. "documented" marks a
name that no client of these sent.
"""

import re
from enum import StrEnum
from typing import NamedTuple

MCP_SESSION = b"mcp-session-id"
"""Names a session of MCP: given by the answer to `initialize`, and sent with each request after it."""
STDIO_COMMAND = b"playhead-stdio-command"
"""How a server over standard input and output is started, as `playhead stdio` says it."""
STDIO_INSTANCE = b"playhead-stdio-instance"
"""Which of the servers of one name it is, in the order of their starts: `NAME/1`, `NAME/2` ..."""

NOISE: dict[bytes, str] = {
    **dict.fromkeys(
        (
            b"connection",
            b"keep-alive",
            b"proxy-connection",
            b"te",
            b"trailer",
            b"transfer-encoding",
            b"content-length",
            b"expect",
        ),
        "httpx over HTTP/1.1 and HTTP/2; curl, git and Bun through a proxy: framing",
    ),
    b"host": "compared as the name of the host, with every other name of it",
    b"proxy-authorization": "what names a run here",
    b"http2-settings": "curl: an offer of h2c, with the settings of a connection",
    b"sec-websocket-key": "every WebSocket client: random, and answered anew",
    b"user-agent": "boto3 in every run; all others with another version or machine",
    b"x-goog-api-client": "google-cloud-storage, @google-cloud/storage: an id for each call",
    b"x-stripe-client-telemetry": "stripe: the last request and its milliseconds",
    b"x-stripe-client-user-agent": "stripe: an id for each home, versions, kernel",
    b"x-amz-user-agent": "AWS SDK for JavaScript: versions",
    b"x-ms-useragent": "azure-cosmos for JavaScript: versions, machine",
    b"x-elastic-client-meta": "elasticsearch: versions",
    b"x-fern-runtime": "cohere: versions",
    b"x-fern-runtime-version": "cohere: versions",
    b"x-fern-platform": "cohere: machine",
    b"x-fern-sdk-version": "cohere: version",
    b"x-client-info": "supabase: versions, machine",
    b"x-twilio-client": "twilio: version",
    b"x-dashscope-useragent": "Qwen Code: version, machine",
    b"x-langfuse-sdk-version": "langfuse: version",
    b"amz-sdk-invocation-id": "boto3, AWS SDK for JavaScript: random for each call",
    b"amz-sdk-request": "boto3, AWS SDK for JavaScript: which attempt of a call",
    b"x-retry-count": "supabase: which attempt of a call",
    b"grpc-previous-rpc-attempts": "grpcio: which attempt of a call",
    b"grpc-timeout": "grpcio, google-cloud-pubsub: what is left of a deadline",
    b"x-ms-client-request-id": "Azure SDKs: random for each call",
    b"x-ms-activity-id": "azure-cosmos: random for each request",
    b"x-ms-client-id": "azure-cosmos: random for each client",
    b"x-client-request-id": "Claude Code, Codex: random for each request or run",
    b"x-amz-date": "AWS: when it was signed",
    b"x-ms-date": "Azure: when it was signed",
    b"x-goog-date": "Google Cloud: when it was signed; documented",
    b"date": "azure-data-tables: when it was signed",
    **dict.fromkeys(
        (b"traceparent", b"tracestate", b"b3"), "OpenTelemetry, ddtrace, opencode: tracing"
    ),
    b"sentry-trace": "sentry-sdk: tracing",
    b"x-amzn-trace-id": "boto3 in Lambda, OpenTelemetry, huggingface_hub: tracing",
    **dict.fromkeys(
        (
            b"uber-trace-id",
            b"x-cloud-trace-context",
            b"grpc-trace-bin",
            b"grpc-tags-bin",
            b"elastic-apm-traceparent",
            b"newrelic",
        ),
        "tracing; documented",
    ),
}
"""Neither compared nor reported, by lower-case name, with the client that needs it."""

COOKIE_NOISE: dict[str, str] = {
    "AWSALB": "AWS load balancer: which machine answers, new with each answer",
    "AWSALBCORS": "AWS load balancer: the same",
    "AWSALBTG": "AWS load balancer: which group of machines",
    "AWSALBTGCORS": "AWS load balancer: the same",
    "AWSELB": "AWS load balancer (classic)",
    "AWSELBCORS": "AWS load balancer (classic)",
    "GCLB": "Google Cloud load balancer",
    "GAESA": "Google App Engine: which instance answers",
    "ARRAffinity": "Azure App Service: which instance answers",
    "ARRAffinitySameSite": "Azure App Service: the same",
    "ApplicationGatewayAffinity": "Azure Application Gateway",
    "ApplicationGatewayAffinityCORS": "Azure Application Gateway",
    "__cflb": "Cloudflare load balancer",
    "__cf_bm": "Cloudflare: a mark of its bot check, new every half hour",
    "_cfuvid": "Cloudflare: who is counted for a limit",
}
"""Cookies that say which machine answers, and nothing of who asks; documented by those who set them."""

NOISE_FAMILIES: dict[bytes, str] = {
    b"x-stainless-": "openai, anthropic, groq, together: attempts, timeouts, versions, machine",
    b"x-b3-": "OpenTelemetry, opencode: tracing",
    b"x-datadog-": "ddtrace: tracing",
}
"""Beginnings of names that are noise."""

BAGGAGE = b"baggage"
"""Noise are its members of sentry-sdk; the others are the agent's own."""
BAGGAGE_NOISE = b"sentry-"


class Link(StrEnum):
    """How values of a field stand for one another in two runs."""

    NONE = ""
    """They need not: any value is served."""
    RUN = "run"
    """One recorded value stands for one present value for the whole run; presence counts."""
    FOLLOWS = "follows"
    """The same, but a value that is not recorded has to be known from a field that is linked by `RUN`."""
    LATE = "late"
    """The same as `RUN`, but presence does not count, and another value stands for the recorded one only once something was asked that
    the tape has with that one alone. Until then either does: who starts at the same time begins alike."""
    NUMBER = "number"
    """The same as `LATE`, also of equal values: they are numbers in the order of starts, which may be another one."""


class Reported(NamedTuple):
    """A field whose value may differ, and is reported where it does."""

    name: bytes
    client: str
    """Who needs it."""
    link: Link = Link.NONE
    field: bytes = b""
    """It is reported only beside this field; decisive otherwise."""
    starts: bytes = b""
    """How the value of that field begins, in lower case."""
    method: str = ""
    path: str = ""
    """It is reported only with this method and path; decisive otherwise."""


REPORTED: tuple[Reported, ...] = (
    Reported(STDIO_COMMAND, "playhead stdio: paths differ from machine to machine", Link.LATE),
    Reported(STDIO_INSTANCE, "playhead stdio: servers that start at once", Link.NUMBER),
    Reported(b"accept-encoding", "httpx, requests, aiohttp: brotli or zstandard is there or not"),
    Reported(b"grpc-accept-encoding", "grpcio: which codings were built in"),
    Reported(b"x-claude-code-session-id", "Claude Code", Link.RUN),
    Reported(b"session-id", "Codex", Link.RUN, b"originator", b"codex"),
    Reported(b"thread-id", "Codex", Link.RUN, b"originator", b"codex"),
    Reported(b"x-codex-window-id", "Codex", Link.RUN, b"originator", b"codex"),
    Reported(b"session-id", "opencode", Link.RUN, b"originator", b"opencode"),
    Reported(b"x-session-id", "opencode", Link.RUN, b"originator", b"opencode"),
    Reported(b"x-session-affinity", "opencode", Link.RUN, b"originator", b"opencode"),
    Reported(b"x-gemini-api-privileged-user-id", "Gemini CLI in another home", Link.RUN),
    Reported(b"x-ms-proposed-lease-id", "azure-storage-blob", Link.RUN),
    Reported(b"x-ms-lease-id", "azure-storage-blob: a lease that it proposed", Link.FOLLOWS),
    Reported(MCP_SESSION, "mcp: the server's own, which the tape gives again", Link.FOLLOWS),
    Reported(
        b"x-ms-consistency-level",
        "azure-cosmos: a thread in the background",
        field=b"user-agent",
        starts=b"azsdk-python-cosmos",
        method="GET",
        path="/",
    ),
    Reported(b"accept-language", "git in another locale", field=b"user-agent", starts=b"git/"),
    Reported(b"x-request-id", "proxies and frameworks: random for each request; documented"),
    Reported(b"x-correlation-id", "frameworks: random for each request; documented"),
    Reported(b"client-request-id", "Microsoft Graph: random for each request; documented"),
    Reported(b"x-goog-spanner-request-id", "google-cloud-spanner; documented"),
    Reported(b"xero-correlation-id", "xero; documented"),
)
"""Served whatever the value is, under the condition of the entry, and listed as `headers differ`."""

KEYS_OF_EFFECTS = frozenset(
    (
        b"idempotency-key",
        b"x-idempotency-key",
        b"paypal-request-id",
        b"x-goog-gcs-idempotency-token",
        b"x-amz-client-token",
        b"x-amzn-client-token",
        b"x-amz-pay-idempotency-key",
    )
)
"""Idempotency keys: that there is one is compared, and which effects of a run share one (`idempotency_keys.py`).

Source: the members with `idempotencyToken` in botocore's service models for `x-amz*-client-token`, and Amazon Pay's API reference.
"""

MEMBERS_OF_EFFECTS = frozenset(
    (
        *("ClientToken", "clientToken", "ClientRequestToken", "clientRequestToken"),
        *("IdempotencyToken", "idempotencyToken", "CreatorRequestId", "creatorRequestId"),
        *("CreationToken", "client-token"),
        "idempotency_key",
    )
)
"""The same in a JSON body's first level, a form or a query.

Source: the members with `idempotencyToken` in botocore's service models, but for names such as `requestId` that others use for other
things; `idempotency_key` of the API references of Square and Plaid.
"""
_MEMBERS_LOWER = frozenset(name.lower() for name in MEMBERS_OF_EFFECTS)
_NAMED_FOR_IT = frozenset(("idempotencykey", "idempotencytoken"))
_HINT = re.compile(
    rb"idempotency|client-?token|clientrequesttoken|creatorrequestid|creationtoken|\\u00|%",
    re.IGNORECASE,
)


def is_key_of_effect(name: str) -> bool:
    """Say whether a member of a JSON body's first level, a form or a query is an idempotency key, however its name is written."""
    lower = name.lower()
    return lower in _MEMBERS_LOWER or lower.replace("-", "").replace("_", "") in _NAMED_FOR_IT


def may_have_key(data: bytes) -> bool:
    """Say whether a text may have such a member, before it is parsed: some name occurs, or may be spelled with escapes."""
    return _HINT.search(data) is not None


HOSTS_OF_MEMBERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(
        (f"*://*.{host}", tuple(sorted(MEMBERS_OF_EFFECTS - {"idempotency_key"})))
        for host in ("amazonaws.com", "amazonaws.com.cn", "api.aws")
    ),
    *(
        (f"*://*{host}", ("idempotency_key",))
        for host in (".squareup.com", ".squareupsandbox.com", ".plaid.com")
    ),
)
"""Where the value of such a member does not count, as that of an idempotency key in a header field: pattern and names."""

NEW_CONDITIONS = (b"if-none-match", b"if-modified-since")
"""Of a GET that was recorded without and answered 200 in full, which is an answer to a request with them, too: Claude Code
from its second run on. Never the other way round, and never another value."""

DIGESTS = frozenset(
    (
        b"content-md5",
        b"content-digest",
        b"digest",
        b"x-amz-content-sha256",
        b"x-ms-content-crc64",
        b"x-goog-hash",
        *(
            b"x-amz-checksum-" + name
            for name in (b"crc32", b"crc32c", b"crc64nvme", b"sha1", b"sha256")
        ),
    )
)
"""Digests of a body that is compared itself: presence counts, a value that reads like a digest does not."""

TURN = b"x-codex-turn-metadata"
"""JSON of Codex, compared as such without these members, which are linked."""
TURN_LINKED = (
    "session_id",
    "thread_id",
    "window_id",
    "context_window_id",
    "installation_id",
    "turn_id",
    "root_turn_id",
)
TURN_TIME = "turn_started_at_unix_ms"
"""Its member that is a time of now, in milliseconds."""

DECISIVE: dict[str, tuple[bytes, ...]] = {
    "HTTP": (
        b"accept",
        b"content-type",
        b"content-encoding",
        b"range",
        b"if-match",
        b"if-none-match",
        b"if-modified-since",
        b"if-unmodified-since",
        b"if-range",
        b"content-range",
        b"prefer",
        b"origin",
        b"x-http-method-override",
        b"x-dry-run",
        b"forwarded",
        b"upgrade",
        b"x-forwarded-user",
    ),
    "WebDAV, git": (b"depth", b"destination", b"overwrite", b"lock-token", b"if", b"git-protocol"),
    "WebSocket, SSE": (b"sec-websocket-protocol", b"last-event-id"),
    "MCP": (b"mcp-protocol-version", b"mcp-method", b"mcp-name"),
    "OpenAI": (b"openai-organization", b"openai-project", b"openai-beta"),
    "Anthropic": (b"anthropic-version", b"anthropic-beta"),
    "Google": (
        b"x-goog-user-project",
        b"x-goog-request-params",
        b"x-goog-fieldmask",
        b"x-goog-if-generation-match",
        b"x-goog-copy-source",
        b"google-cloud-resource-prefix",
        b"login-customer-id",
    ),
    "AWS": (
        b"x-amz-target",
        b"x-amz-copy-source",
        b"x-amz-copy-source-range",
        b"x-amz-expected-bucket-owner",
        b"x-amz-acl",
        b"x-amz-metadata-directive",
        b"x-amz-server-side-encryption",
        b"x-amz-request-payer",
        b"x-amz-tagging",
        b"x-amz-invocation-type",
        b"x-amzn-bedrock-guardrailidentifier",
    ),
    "Azure": (
        b"x-ms-range",
        b"x-ms-version",
        b"x-ms-copy-source",
        b"x-ms-blob-type",
        b"x-ms-lease-action",
        b"x-ms-documentdb-partitionkey",
        b"x-ms-continuation",
        b"x-ms-session-token",
        b"x-ms-rename-source",
        b"dataserviceversion",
    ),
    "Microsoft Graph": (b"consistencylevel", b"x-anchormailbox", b"mscrmcallerid"),
    "Stripe, PayPal, Square": (
        b"stripe-account",
        b"stripe-version",
        b"stripe-context",
        b"paypal-auth-assertion",
        b"square-version",
    ),
    "GitHub, GitLab": (b"x-github-api-version", b"sudo"),
    "Notion, Salesforce, Box, Dropbox": (
        b"notion-version",
        b"sforce-query-options",
        b"as-user",
        b"dropbox-api-arg",
        b"dropbox-api-select-user",
        b"dropbox-api-path-root",
    ),
    "Databases": (
        b"x-hasura-role",
        b"x-hasura-user-id",
        b"accept-profile",
        b"content-profile",
        b"x-opaque-id",
        b"x-clickhouse-database",
        b"x-databricks-org-id",
    ),
    "Kubernetes, Vault": (b"impersonate-user", b"impersonate-group", b"x-vault-namespace"),
    "Tenants": (b"x-tenant-id", b"xero-tenant-id", b"x-scope-orgid", b"x-grafana-org-id"),
    "SOAP": (b"soapaction",),
}
"""Fields that are known to name tenants, resources, roles, versions and conditions. A field that is in no list counts as
these do; they are listed so that none of them ever becomes noise."""

DECISIVE_NAMES = frozenset(name for names in DECISIVE.values() for name in names)
"""All of `DECISIVE`."""
