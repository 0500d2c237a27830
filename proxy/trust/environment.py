"""The environment that makes a child process use the proxy and trust its certificates.

Which variables those are stands in `variables`; here they get their values, and the files that some of them name.
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

from ...store.encryption.key import VARIABLE
from ..errors import EngineError
from .atomic_files import write_public
from .ca import BUNDLE_FILE, CERTIFICATE_FILE
from .client_root_certificates import certificates_in
from .variables import OUTRANKING, TABLE, Holds, names, rows

WGETRC_FILE = "playhead-wgetrc"
TRUST_STORE_FILE = "playhead-ca-bundle.p12"

_LEADING = (Holds.PROXY, Holds.YES)
"""Tell where the proxy is, or to go there; others are about trust."""
_OURS = frozenset(name for row in TABLE for name in names(row))
_USERINFO = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?[^/?#\s]*@")
_LOGIN = r"-D(?:(?:https?|ftp)\.proxy(?:User|Password)|java\.net\.socks\.(?:username|password))="
_JAVA_LOGIN = re.compile(
    rf"""(?:^|(?<=\s))(?:"{_LOGIN}[^"]*"|'{_LOGIN}[^']*'|{_LOGIN}(?:[^\s"']|"[^"]*"|'[^']*')*)(?:\s+|\Z)"""
)
"""Options of Java that log in to a proxy."""
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


def environment(
    base: Mapping[str, str], *, proxy_url: str | None, public_dir: Path
) -> dict[str, str]:
    """Make the environment for a child out of `base`, and write the files it names.

    proxy_url, public_dir: as for `variables`.
    Raises: EngineError, when a file cannot be read or written.
    """
    ours = variables(base, proxy_url=proxy_url, public_dir=public_dir)
    # The key of the store is none of the agent's business.
    theirs = {
        name: _without_credentials(value)
        for name, value in base.items()
        if not _outranks(name, value) and name != VARIABLE
    }
    if proxy_url is None:
        led = {name for row in TABLE if row.holds in _LEADING for name in names(row)}
        theirs = {name: value for name, value in theirs.items() if name not in led}
    return theirs | ours


def variables(
    base: Mapping[str, str],
    *,
    proxy_url: str | None,
    public_dir: Path,
    seen_at: Path | None = None,
) -> dict[str, str]:
    """Make the variables of ours alone, and write the files that they name.

    base: what the child would have; options for Java and settings for wget are kept.
    proxy_url: as `proxy_url` writes it; None makes the child trust the proxy and leads it nowhere. Java takes host
        and port only: its clients cannot send credentials.
    public_dir: where `open_ca` left certificate and bundle; wget's and Java's files are written there.
    seen_at: where the child finds that folder, for one with a file system of its own; what is written there may be
        read by everybody then, and holds nothing of the person's.
    Raises: EngineError, when a file cannot be read or written.
    """
    public_dir = public_dir.resolve()
    place = seen_at or public_dir
    made: dict[str, str] = {}
    for row in rows(base):
        if proxy_url is None and row.holds in _LEADING:
            continue
        match row.holds:
            case Holds.PROXY:
                value = proxy_url or ""
            case Holds.NOTHING:
                value = ""
            case Holds.BUNDLE:
                value = str(place / BUNDLE_FILE)
            case Holds.CERTIFICATE:
                value = str(place / CERTIFICATE_FILE)
            case Holds.YES:
                value = "1"
            case Holds.WGETRC:
                value = str(place / _write_wgetrc(base, public_dir, seen_at))
            case Holds.JAVA:
                store = place / _write_trust_store(public_dir / BUNDLE_FILE)
                value = _java_options(base, proxy_url, store)
        made |= dict.fromkeys(names(row), value)
    return made


def publish(public_dir: Path) -> None:
    """Write the files that variables name, for agents that are told of them by hand.

    Raises: EngineError, when they cannot be written.
    """
    variables({}, proxy_url=None, public_dir=public_dir, seen_at=public_dir.resolve())


def removed(base: Mapping[str, str]) -> list[str]:
    """Name what a child must not have: what outranks ours, as it is written usually and here."""
    usual = {case for name in OUTRANKING for case in (name, name.upper())}
    return sorted(usual | {name for name, value in base.items() if _outranks(name, value)})


def _outranks(name: str, value: str) -> bool:
    """Say whether a variable leads past us, or names a proxy of the network with its credentials."""
    if name.lower() in OUTRANKING:
        return True
    told = name.lower().endswith("_proxy") and name not in _OURS
    return told and _USERINFO.match(value) is not None


def _without_credentials(options: str) -> str:
    """Give options without what logs in to a proxy of the network."""
    return _JAVA_LOGIN.sub("", options).strip() if _JAVA_LOGIN.search(options) else options


def _write_wgetrc(base: Mapping[str, str], public_dir: Path, seen_at: Path | None) -> str:
    """Write settings for wget, on this machine the person's own with ours after them; give the file's name."""
    if seen_at is not None:
        name = f"{WGETRC_FILE}-{seen_at.name}"  # not the one that names files of this machine
        write_public(public_dir / name, f"ca_certificate = {seen_at / BUNDLE_FILE}\n".encode())
        return name
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
    text = "\n".join([*kept, f"ca_certificate = {public_dir / BUNDLE_FILE}", ""])
    # 0600, because the person's own lines may hold a password.
    write_public(ours, text.encode(errors="surrogateescape"), mode=0o600)
    return WGETRC_FILE


def _wget_command(line: str) -> str:
    # wget reads commands without regard to case, dashes and underscores (wget manual, "Wgetrc Syntax").
    return re.sub(r"[-_\s]", "", line.partition("=")[0]).lower()


def _write_trust_store(bundle: Path) -> str:
    """Write the bundle as Java reads it; give the file's name.

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
            return TRUST_STORE_FILE
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
    return TRUST_STORE_FILE


def _java_options(base: Mapping[str, str], proxy_url: str | None, store: Path) -> str:
    """Write what Java is to be told after what the person tells it; it takes the last of each."""
    options = []
    if proxy_url is not None:
        parts = urlsplit(proxy_url)
        options += [f"-D{scheme}.proxyHost={parts.hostname}" for scheme in ("http", "https")]
        options += [f"-D{scheme}.proxyPort={parts.port}" for scheme in ("http", "https")]
        options += ["-Dhttp.nonProxyHosts="]
    options += [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=PKCS12"]
    ours = " ".join(map(shlex.quote, options))
    theirs = base.get("JAVA_TOOL_OPTIONS", "").removesuffix(ours).rstrip()  # set by us before
    theirs = _without_credentials(theirs)
    return f"{theirs} {ours}" if theirs else ours
