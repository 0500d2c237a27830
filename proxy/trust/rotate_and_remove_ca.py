"""Give a store's CA a new key, or remove it with all that was handed to clients."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ...store import make_own_folder, require_own_contents
from ...store.paths import CA_KEY, PRIVATE
from ..errors import EngineError
from .atomic_files import write_public
from .ca import (
    BUNDLE_FILE,
    CERTIFICATE_FILE,
    ROOTS_PREFIX,
    CertificateAuthority,
    generate_pem,
    open_ca,
)
from .environment import TRUST_STORE_FILE, WGETRC_FILE


def rotate_ca(
    store: Path,
    public_dir: Path,
    *,
    upstream_ca: Path | None = None,
    environ: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> CertificateAuthority:
    """Make another CA in place of a store's, broken or not, and publish it; processes that run keep the old one.

    upstream_ca, environ, now: as for `open_ca`.
    Raises: EngineError.
    """
    now = now or datetime.now(UTC)
    private = store / PRIVATE
    require_own_contents(private)
    try:
        make_own_folder(private)
    except OSError as error:
        raise EngineError(
            f"cannot make {str(private)!r}: {error.strerror or error}",
            "Choose a folder that can be written with --store.",
        ) from error
    write_public(private / CA_KEY, generate_pem(now), 0o600)
    return open_ca(store, public_dir, upstream_ca=upstream_ca, environ=environ, now=now)


def remove_ca(store: Path, public_dir: Path) -> list[Path]:
    """Remove a store's CA: its key, the public files, and roots that were kept for proxies; give what was there.

    The next start makes another. Other keys of the store are left alone.
    Raises: EngineError, where a file cannot be removed.
    """
    private = store / PRIVATE
    public = (CERTIFICATE_FILE, BUNDLE_FILE, WGETRC_FILE, TRUST_STORE_FILE)
    found = [
        path
        for path in (
            private / CA_KEY,
            *(public_dir / name for name in public),
            *private.glob(f"{ROOTS_PREFIX}*.pem"),
        )
        if path.exists()
    ]
    for path in found:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise EngineError(
                f"cannot remove {str(path)!r}: {error.strerror or error}",
                "Run it as the user that Playhead runs as.",
            ) from error
    return found
