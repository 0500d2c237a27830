"""The variables that direct clients to the proxy and make them trust it, one row each.

`trust` fills in the values, for `record`, `replay`, `doctor` and `env`; a test holds `compose.yaml` and
`docs/clients.md` against these rows. Which variable reaches which client was measured with 57 clients (HTTP,
WebSocket and gRPC libraries of Python, Node, Deno, Bun, Java and Go, and the usual command line tools). The rules
that came of it:

1. Both cases of the proxy variables; WebSockets of aiohttp follow only theirs.
2. `NO_PROXY` is set and empty, which is more than taking it out: an inherited `localhost` hides local tool servers,
   and one in a `.env` file of the agent's would come back.
3. Trust variables that replace a client's roots get the bundle; those that add to them our certificate alone.
4. Never `NODE_OPTIONS=--use-env-proxy`: Node 20 refuses to start with it.
5. wget and Java read files, which are written beside the bundle.

Out of reach for any variable: Go to loopback, code with a TLS context of its own or `trust_env=False`, pinning.
"""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import NamedTuple


class Holds(StrEnum):
    """What a variable is set to."""

    PROXY = "the proxy's address"
    NOTHING = "nothing: it is set, and empty"
    BUNDLE = "the combined bundle"
    CERTIFICATE = "our certificate alone"
    YES = "1"
    WGETRC = "a file of settings for wget"
    JAVA = "options for every Java that is started"


class Variable(NamedTuple):
    """One row."""

    name: str
    holds: Holds
    readers: str
    """Who reads it."""
    in_lower_case_too: bool = False
    only_where_set: bool = False
    """Ranks above another row with those that read it, and means nothing to others."""


OURS = "PLAYHEAD_PROXY"
"""Tells our own programs that the proxy is one of ours."""

TABLE = (
    Variable("HTTPS_PROXY", Holds.PROXY, "nearly all", in_lower_case_too=True),
    Variable("HTTP_PROXY", Holds.PROXY, "nearly all", in_lower_case_too=True),
    Variable("ALL_PROXY", Holds.PROXY, "curl, git, httpx, Deno, Bun", in_lower_case_too=True),
    Variable("WSS_PROXY", Holds.PROXY, "aiohttp, websockets", in_lower_case_too=True),
    Variable("WS_PROXY", Holds.PROXY, "aiohttp, websockets", in_lower_case_too=True),
    Variable("GRPC_PROXY", Holds.PROXY, "grpcio", in_lower_case_too=True),
    Variable(OURS, Holds.PROXY, "playhead stdio"),
    Variable("NODE_USE_ENV_PROXY", Holds.YES, "Node 22.21, 24 and newer"),
    Variable("PERL_LWP_ENV_PROXY", Holds.YES, "Perl's LWP"),
    Variable("NO_PROXY", Holds.NOTHING, "nearly all", in_lower_case_too=True),
    Variable("NO_GRPC_PROXY", Holds.NOTHING, "grpcio", in_lower_case_too=True),
    Variable("SSL_CERT_FILE", Holds.BUNDLE, "OpenSSL: Python, httpx, Ruby; Go, Bun, curl, uv"),
    Variable("REQUESTS_CA_BUNDLE", Holds.BUNDLE, "requests, boto3"),
    Variable("CURL_CA_BUNDLE", Holds.BUNDLE, "curl, requests"),
    Variable("AWS_CA_BUNDLE", Holds.BUNDLE, "boto3, the AWS command line"),
    Variable("GIT_SSL_CAINFO", Holds.BUNDLE, "git"),
    Variable("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", Holds.BUNDLE, "gRPC"),
    Variable("DENO_CERT", Holds.BUNDLE, "Deno"),
    Variable("PIP_CERT", Holds.BUNDLE, "pip"),
    Variable("CARGO_HTTP_CAINFO", Holds.BUNDLE, "cargo"),
    Variable("HTTPLIB2_CA_CERTS", Holds.BUNDLE, "httplib2"),
    Variable(
        "npm_config_cafile",
        Holds.BUNDLE,
        "npm, above NODE_EXTRA_CA_CERTS where its settings name roots",
    ),
    Variable("PERL_LWP_SSL_CA_FILE", Holds.BUNDLE, "Perl's LWP"),
    Variable("WEBSOCKET_CLIENT_CA_BUNDLE", Holds.BUNDLE, "websocket-client"),
    Variable("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", Holds.BUNDLE, "gcloud", only_where_set=True),
    Variable("NIX_SSL_CERT_FILE", Holds.BUNDLE, "Nix's programs", only_where_set=True),
    Variable("NODE_EXTRA_CA_CERTS", Holds.CERTIFICATE, "Node, npm, Deno, Bun"),
    Variable("WGETRC", Holds.WGETRC, "wget"),
    Variable("JAVA_TOOL_OPTIONS", Holds.JAVA, "Java"),
)

OUTRANKING = (
    "pip_proxy",
    "cargo_http_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "npm_config_cafile",
    "yarn_proxy",
    "yarn_http_proxy",
    "yarn_https_proxy",
    "ftp_proxy",
    "rsync_proxy",
)
"""Rank above ours and would lead past us, or away from our CA: taken out, in whatever case they are written."""


def rows(environ: Collection[str]) -> Iterator[Variable]:
    """Yield the rows that are meant for somebody who has variables of these names."""
    return (row for row in TABLE if not row.only_where_set or row.name in environ)


def names(row: Variable) -> tuple[str, ...]:
    """Give what a row is called, in each case that it is wanted in."""
    return (row.name, row.name.lower()) if row.in_lower_case_too else (row.name,)
