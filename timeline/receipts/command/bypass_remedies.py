"""What to do about clients that distrust the proxy or go past it, by the name of their process.

The variables are those of docs/clients.md; `record` sets them for its command, so a client that distrusts or goes past all the same
does not read them, or changed its environment.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_CAPTURE = (
    "record with --capture (a sandbox in which every connection leads to the proxy, and the system's"
    " roots contain its CA)"
)
_NOTIFY = (
    "record with --sandbox notify (`sandbox.record: notify`, on Linux: connections to ports 80, 443 and those of `sandbox.ports` are"
    " led to the proxy, and the command keeps the rest of its world)"
)
_PRELOAD = "record with --determinism seed (its preload leads the client through the proxy and has it trust the CA)"
_TRUST: tuple[tuple[tuple[str, ...], str], ...] = (
    (("node", "npm", "npx", "claude", "codex", "electron"), "NODE_EXTRA_CA_CERTS"),
    (("bun",), "NODE_EXTRA_CA_CERTS"),
    (("deno",), "DENO_CERT"),
    (
        ("python", "pytest", "uv", "ipython"),
        "SSL_CERT_FILE or REQUESTS_CA_BUNDLE (GRPC_DEFAULT_SSL_ROOTS_FILE_PATH for gRPC)",
    ),
    (("curl",), "CURL_CA_BUNDLE"),
    (("git",), "GIT_SSL_CAINFO"),
    (("java",), "JAVA_TOOL_OPTIONS"),
    (("aws",), "AWS_CA_BUNDLE"),
    (("pip",), "PIP_CERT"),
    (("cargo",), "CARGO_HTTP_CAINFO"),
    (("wget",), "WGETRC"),
)
_PRELOADED = ("node", "bun", "python", "pytest", "npm", "npx", "claude", "codex", "uv", "ipython")

_CHROMIUM = ("chromium", "chromium-browse", "chrome", "headless_shell", "msedge")
_NSS = (
    "Chromium reads no variable and not the system's roots: put the CA into the database of its user (`certutil -d"
    " sql:$HOME/.pki/nssdb -A -t C,, -n playhead -i CA.pem`, with the file that `playhead ca` names), or have it ignore errors of"
    " certificates (ignoreHTTPSErrors in Playwright, --ignore-certificate-errors)"
)
_AHEAD = (*_CHROMIUM, "firefox", "firefox-bin")
"""Programs that connect ahead, and look at a certificate in the handshake: they say so if they do not trust it."""
_CHECKING_FIRST = ("python", "pytest", "ipython", "curl", "git", "wget", "java", "pip", "aws")
"""Programs that say nothing in TLS, not even the greeting of HTTP/2, before they have looked at the certificate."""


def may_distrust_silently(processes: Iterable[str], *, greeted: bool) -> bool:
    """Say whether a client that left in its handshake or right after it may have done so over the certificate.

    Node looks at it once TLS is there. So do clients of any language that know the certificate of their server; and gRPC does not
    say in the handshake why it leaves.

    greeted: whether it sent the greeting of HTTP/2 in TLS.
    """
    names = list(processes)
    trusting = (*_AHEAD, *_CHECKING_FIRST) if greeted else _AHEAD
    return not names or any(not _is(name, trusting) for name in names)


def is_chromium(processes: Iterable[str]) -> bool:
    """Say whether these are Chromium, and nobody else."""
    names = list(processes)
    return bool(names) and all(_is(name, _CHROMIUM) for name in names)


def distrust_remedy(processes: Iterable[str]) -> str:
    """Say what makes a client trust the proxy's CA."""
    names = list(processes)
    if is_chromium(names):
        return f"Its requests are not on the tape. {_NSS}"
    variables = [
        variable for known, variable in _TRUST if any(_is(name, known) for name in names)
    ] or ["NODE_EXTRA_CA_CERTS or SSL_CERT_FILE"]
    ways = [f"set {' and '.join(variables)} as `playhead env` prints it"]
    if not names or any(_is(name, _PRELOADED) for name in names):
        ways.append(_PRELOAD)
    return (
        "If it does not trust the proxy's CA, its requests are not on the tape: "
        f"{', '.join((*ways, _CAPTURE))}. A client that pins its server's key cannot be recorded"
    )


def bypass_remedy(processes: Iterable[str], capture: Mapping[str, Any] | None = None) -> str:
    """Say what leads a client through the proxy that went past it.

    capture: `Receipt.capture`; with one, capturing without a sandbox was tried already.
    """
    names = list(processes)
    ways = [_CAPTURE] if capture is not None else [_NOTIFY, _CAPTURE]
    if not names or any(_is(name, _PRELOADED) for name in names):
        ways.append(_PRELOAD)
    if any(_is(name, ("node", "npm", "npx")) for name in names):
        ways.append("use Node 22.21 or newer, with NODE_EXTRA_CA_CERTS and NODE_USE_ENV_PROXY=1")
    return f"{', or '.join(ways)}; see docs/clients.md for each client"


def _is(name: str, known: Iterable[str]) -> bool:
    """Say whether a process is one of these programs, whatever version its name ends with."""
    return name.lower().rstrip("0123456789.-") in known or name.lower() in known
