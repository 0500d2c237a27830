"""The environment that makes a child use the proxy and trust its certificates.

Every client has its own variables; which one reaches which was measured with 57 clients (HTTP, WebSocket and
gRPC libraries of Python, Node, Deno, Bun, Java, Go, and the usual command line tools). The rules that came of it:

1. Both cases of the proxy variables; WebSockets of aiohttp follow only theirs.
2. `NO_PROXY` is set and empty: an inherited `localhost` would hide local tool servers.
3. Trust variables that replace a client's roots get the bundle; those that add to them our certificate alone.
4. Never `NODE_OPTIONS=--use-env-proxy`: Node 20 refuses to start with it.
5. wget and Java read files, which are written beside the bundle.

Out of reach for any variable: Go to loopback, code with a TLS context of its own or `trust_env=False`, pinning.
"""

import contextlib
import hashlib
import ipaddress
import re
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.utils import CryptographyDeprecationWarning

from ..store.key import VARIABLE
from .ca import BUNDLE_FILE, CERTIFICATE_FILE
from .errors import EngineError
from .files import write_public
from .roots import certificates_in

WGETRC_FILE = "playhead-wgetrc"
TRUST_STORE_FILE = "playhead-ca-bundle.p12"

_PROXY = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "WSS_PROXY", "WS_PROXY", "GRPC_PROXY")
_NO_PROXY = ("NO_PROXY", "NO_GRPC_PROXY")
_BUNDLE = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "DENO_CERT",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "WEBSOCKET_CLIENT_CA_BUNDLE",
)
_BUNDLE_WHERE_SET = ("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "NIX_SSL_CERT_FILE")
"""Rank above SSL_CERT_FILE with the tools that read them, and mean nothing to others."""
_OTHER_PROXIES = frozenset(
    (
        "pip_proxy",
        "cargo_http_proxy",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "npm_config_noproxy",
    )
)
"""Rank above the proxy variables and would lead past us; left out, in whatever case they are written."""
_WGET_OURS = frozenset(("cacertificate", "httpproxy", "httpsproxy", "noproxy", "useproxy"))


def proxy_url(host: str, port: int, *, run: str = "", token: str = "") -> str:
    """Write the address of a proxy as clients want it: IPv6 in brackets, credentials escaped.

    host: address the proxy listens on; the unspecified one is reached over loopback.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        host = f"[{address}]" if address.version == 6 else str(address)
    credentials = f"{quote(run, safe='')}:{quote(token, safe='')}@" if run or token else ""
    return f"http://{credentials}{host}:{port}"


def environment(base: Mapping[str, str], *, proxy_url: str, public_dir: Path) -> dict[str, str]:
    """Make the environment for a child out of `base`, and write the files it names.

    proxy_url: as `proxy_url` writes it. Java takes host and port only: its clients cannot send credentials.
    public_dir: where `open_ca` left certificate and bundle; wget's and Java's files are written there.
    Raises: EngineError, when a file cannot be read or written.
    """
    public_dir = public_dir.resolve()
    bundle = public_dir / BUNDLE_FILE
    made = {name: value for name, value in base.items() if name.lower() not in _OTHER_PROXIES}
    made.pop(VARIABLE, None)  # the key of the store is none of the agent's business
    for name in _PROXY:
        made[name] = made[name.lower()] = proxy_url
    for name in _NO_PROXY:
        made[name] = made[name.lower()] = ""
    for name in (*_BUNDLE, *(name for name in _BUNDLE_WHERE_SET if name in base)):
        made[name] = str(bundle)
    made["NODE_EXTRA_CA_CERTS"] = str(public_dir / CERTIFICATE_FILE)
    made["NODE_USE_ENV_PROXY"] = "1"
    made["WGETRC"] = str(_write_wgetrc(base, public_dir, bundle))
    made["JAVA_TOOL_OPTIONS"] = _java_options(base, proxy_url, _write_trust_store(bundle))
    return made


def _write_wgetrc(base: Mapping[str, str], public_dir: Path, bundle: Path) -> Path:
    """Write the person's own settings for wget with ours after them."""
    ours = public_dir / WGETRC_FILE
    candidates = [Path(base["WGETRC"])] if base.get("WGETRC") else []
    candidates += [Path(base["HOME"]) / ".wgetrc"] if base.get("HOME") else []
    theirs = next((path for path in candidates if path.resolve() != ours), None)
    lines: list[str] = []
    if theirs is not None:
        # wget does without a file that cannot be read, so do we.
        with contextlib.suppress(OSError):
            lines = theirs.read_text(errors="surrogateescape").splitlines()
    kept = [line for line in lines if _wget_command(line) not in _WGET_OURS]
    text = "\n".join([*kept, f"ca_certificate = {bundle}", ""])
    # 0600, because the person's own lines may hold a password.
    write_public(ours, text.encode(errors="surrogateescape"), mode=0o600)
    return ours


def _wget_command(line: str) -> str:
    # wget reads commands without regard to case, dashes and underscores (wget manual, "Wgetrc Syntax").
    return re.sub(r"[-_\s]", "", line.partition("=")[0]).lower()


def _write_trust_store(bundle: Path) -> Path:
    """Write the bundle as Java reads it.

    Without a password or digest: it holds nothing secret, and every Java reads such a store whatever password
    it was told, while the stronger schemes are unknown to older ones.
    """
    store = bundle.with_name(TRUST_STORE_FILE)
    try:
        content = bundle.read_bytes()
    except OSError as error:
        raise EngineError(
            f"cannot read the bundle {str(bundle)!r}: {error.strerror or error}",
            "Start Playhead with the same --ca-dir or --store first.",
        ) from error
    # Names carry the bundle's digest: the format has a random part, so that contents cannot be compared.
    name = f"playhead-{hashlib.sha256(content).hexdigest()[:32]}"
    with contextlib.suppress(FileNotFoundError):
        if name.encode("utf-16-be") in store.read_bytes():
            return store
    certificates = []
    with warnings.catch_warnings():
        # Some system's roots have serial number 0, which is deprecated here and no concern of ours.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        for block in certificates_in(content):
            # One that is malformed is left out; Java would not use it either.
            with contextlib.suppress(ValueError):
                certificates.append(x509.load_pem_x509_certificate(block))
    named = [
        pkcs12.PKCS12Certificate(certificate, f"{name}-{number}".encode())
        for number, certificate in enumerate(certificates)
    ]
    write_public(store, pkcs12.serialize_java_truststore(named, serialization.NoEncryption()))
    return store


def _java_options(base: Mapping[str, str], proxy_url: str, store: Path) -> str:
    parts = urlsplit(proxy_url)
    options = [f"-D{scheme}.proxyHost={parts.hostname}" for scheme in ("http", "https")]
    options += [f"-D{scheme}.proxyPort={parts.port}" for scheme in ("http", "https")]
    options += ["-Dhttp.nonProxyHosts=", f"-Djavax.net.ssl.trustStore={store}"]
    options += ["-Djavax.net.ssl.trustStoreType=PKCS12"]
    theirs = [base["JAVA_TOOL_OPTIONS"]] if base.get("JAVA_TOOL_OPTIONS") else []
    return " ".join([*theirs, *map(shlex.quote, options)])
