"""What to do about clients that distrust the proxy or go past it, by the name of their process.

The variables are those of docs/clients.md; `record` sets them for its command, so a client that distrusts or goes past all the same
does not read them, or changed its environment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_PORTS = "ports 80, 443 and those of `sandbox.ports`"
_CAPTURE = f"record with --capture (a sandbox in which connections to {_PORTS} lead to the proxy, and the system's roots contain its CA)"
_NOTIFY = (
    f"record with --sandbox notify (on Linux: connections to {_PORTS} are led to the proxy, the receipt names other ports that the"
    " command tried, and the command keeps the rest of its world)"
)
_PRELOAD = (
    "record with --determinism seed (its preload leads http.client, aiohttp and Node's fetch to the proxy, unless the program decides"
    " that itself)"
)
_OWN_ROOTS = (
    "if it loads roots of its own (`verify=`, `cafile`, `ca`), have it load the file that SSL_CERT_FILE names"
    " (the bundle that `playhead ca` prints)"
)
_PRELOAD_ROOTS = "if it takes certifi's roots, record with --determinism seed"
_SYSTEM_ROOTS = "if it takes the system's roots, record with --capture"
_HTTP_PORTS = (80, 443)
_MOST_PORTS = 10
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


@dataclass(frozen=True, slots=True)
class InUse:
    """What a run had already, which no advice names again."""

    is_launched: bool = False
    """Whether Playhead started its command, with the variables set."""
    capture: Mapping[str, Any] | None = None
    """`Receipt.capture`: with it, capturing without a sandbox was tried."""
    is_contained: bool = False
    """Whether it was in a sandbox."""
    has_preload: bool = False


NOTHING_IN_USE = InUse()


def distrust_remedy(processes: Iterable[str], in_use: InUse = NOTHING_IN_USE) -> str:
    """Say what makes a client trust the proxy's CA.

    in_use: what has not helped.
    """
    names = list(processes)
    if is_chromium(names):
        return f"Its requests are not on the tape. {_NSS}"
    variables = [
        variable for known, variable in _TRUST if any(_is(name, known) for name in names)
    ] or ["NODE_EXTRA_CA_CERTS or SSL_CERT_FILE"]
    ways = [_OWN_ROOTS]
    if not in_use.is_launched:
        ways.insert(0, f"set {' and '.join(variables)} as `playhead env` prints it")
    if not in_use.has_preload and (not names or any(_is(name, _PRELOADED) for name in names)):
        ways.append(_PRELOAD_ROOTS)
    if not in_use.is_contained:
        ways.append(_SYSTEM_ROOTS)
    return (
        "If it does not trust the proxy's CA, its requests are not on the tape: "
        f"{'; '.join(ways)}. A client that pins its server's key cannot be recorded"
    )


def bypass_remedy(
    processes: Iterable[str], in_use: InUse = NOTHING_IN_USE, ports: Iterable[int] = ()
) -> str:
    """Say what leads a client through the proxy that went past it.

    in_use: what has not helped.
    ports: of TCP, that it connected to.
    """
    names = list(processes)
    captured = in_use.capture is not None and not in_use.capture["off"]
    led = _HTTP_PORTS if in_use.capture is None else in_use.capture.get("ports", _HTTP_PORTS)
    ways = []
    further = sorted({*ports} - {*led})
    if further:
        told = ", ".join(map(str, further[:_MOST_PORTS]))
        line = f"if that is HTTP, add `sandbox: {{ports: [{told}]}}` to the configuration"
        if captured or in_use.is_contained:
            return f"{line}, and record in the same way"
        ways.append(f"{line}, and record with --sandbox notify (on Linux) or --capture")
    else:
        ways += [_NOTIFY] if in_use.capture is None and not in_use.is_contained else []
        ways += [_CAPTURE] if not in_use.is_contained else []
    if not in_use.has_preload and (not names or any(_is(name, _PRELOADED) for name in names)):
        ways.append(_PRELOAD)
    if any(_is(name, ("node", "npm", "npx")) for name in names):
        ways.append("use Node 22.21 or newer, with NODE_EXTRA_CA_CERTS and NODE_USE_ENV_PROXY=1")
    return "; ".join([*filter(None, [", or ".join(ways)]), "see docs/clients.md for each client"])


def _is(name: str, known: Iterable[str]) -> bool:
    """Say whether a process is one of these programs, whatever version its name ends with."""
    return name.lower().rstrip("0123456789.-") in known or name.lower() in known
