"""The roots that a client trusted before Playhead, as PEM text.

Most trust variables replace a client's roots instead of adding to them. Whoever is handed our
certificate alone can reach no other host any more, so the bundle begins with what was in force before:

1. what the person named (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`), unless it is our own bundle;
2. else the system's roots;
3. else those that certifi brings;

and holds besides what single clients were told to trust (`NODE_EXTRA_CA_CERTS`, `AWS_CA_BUNDLE` and the like, and the
folder `SSL_CERT_DIR`): whom such a client reached without us it is to reach through us.
"""

import base64
import os
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from .variables import TABLE, Holds

NAMED_BY = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
ADDED_BY = (
    *(row.name for row in TABLE if row.holds in (Holds.BUNDLE, Holds.CERTIFICATE)),
    "SSL_CERT_DIR",
)

# Where distributions keep one file with all roots. An interpreter that was built elsewhere knows only its
# builder's places. Source: Go crypto/x509, root_linux.go and root_bsd.go.
_SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
)
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def certificates_in(pem: bytes) -> list[bytes]:
    """Cut PEM text into its certificates, without what stands between them."""
    return [block.replace(b"\r", b"") for block in _BLOCK.findall(pem)]


def merge(*sources: Iterable[bytes]) -> list[bytes]:
    """Join lists of PEM certificates; each certificate stands once, where it came first."""
    ordered: dict[bytes, bytes] = {}
    for block in chain.from_iterable(sources):
        ordered.setdefault(b"".join(block.split()), block)
    return list(ordered.values())


def roots_in_force(environ: Mapping[str, str], ours: Path) -> list[bytes]:
    """Collect the roots in force before Playhead, as PEM certificates.

    ours: folder of our public files; a variable that points into it was set by us and says nothing.
    Files that cannot be read count as absent, as they do for OpenSSL.
    """
    return merge(
        _named(NAMED_BY, environ, ours) or _system_roots(), _named(ADDED_BY, environ, ours)
    )


def find_named(
    environ: Mapping[str, str], names: Iterable[str] = (*NAMED_BY, *ADDED_BY)
) -> Iterator[Path]:
    """Yield each file or folder that a variable names for roots, there or not; absolute.

    Whoever can write to one of them decides on the upstreams that the next proxy trusts: a sandbox protects them.
    """
    yield from dict.fromkeys(Path(environ[name]).absolute() for name in names if environ.get(name))


def find_read(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield each place that roots are read from for a variable: those that are named, and what is in folders."""
    for path in find_named(environ):
        yield str(path)
        for place, _, files in os.walk(path):
            yield from (os.path.join(place, name) for name in files)


def _named(names: Iterable[str], environ: Mapping[str, str], ours: Path) -> list[bytes]:
    paths = find_named(environ, names)
    return merge(*(_read(path) for path in paths if not _stands_in(path, ours)))


def _system_roots() -> list[bytes]:
    return next(filter(None, (merge(_read(path)) for path in _system_places())), [])


def find_system_trust(public_key: bytes) -> Path | None:
    """Find the place among the system's roots that has a certificate with this key; None where there is none.

    public_key: as it is written inside a certificate (SubjectPublicKeyInfo, DER).
    """
    for path in _system_places():
        blocks = _read(path)
        if any(public_key in _der(block) for block in blocks):
            return path
        if blocks:
            return None
    return None


def _der(block: bytes) -> bytes:
    """Give what a PEM block encodes; nothing where that is no base64."""
    try:
        return base64.b64decode(b"".join(block.splitlines()[1:-1]))
    except ValueError:
        return b""


def _stands_in(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().parent == folder.resolve()
    except OSError:
        return False


def _system_places() -> Iterator[Path]:
    # Not `.cafile`: that one follows SSL_CERT_FILE, which may be ours.
    paths = ssl.get_default_verify_paths()
    yield Path(paths.openssl_cafile)
    yield from map(Path, _SYSTEM_FILES)
    yield Path(paths.openssl_capath)
    import certifi  # here, because it is the last resort

    yield Path(certifi.where())


def _read(path: Path) -> list[bytes]:
    """Read a file of certificates, or a folder of such files."""
    try:
        if not path.is_dir():
            return certificates_in(path.read_bytes())
        files = sorted(file for file in path.iterdir() if file.is_file())
    except OSError:
        return []
    return [block for file in files for block in _read(file)]
