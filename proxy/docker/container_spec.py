"""The specification of an agent's container: variables, mounted files and flags."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..determinism import PreloadBundle
from ..sandbox.filesystem.masking import ROOTS
from ..trust.ca import BUNDLE_FILE, CERTIFICATE_FILE
from ..trust.environment import removed, variables
from . import seccomp_profile as profile
from .volumes import bind

PRELOADS = Path(profile.__file__).resolve().parents[1] / "determinism"
HARD = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_PIDS = 4096
_LINE = 60_000


def agent_variables(
    image: Mapping[str, str],
    given: Mapping[str, str],
    *,
    url: str,
    certificates: Path,
    preload_bundle: PreloadBundle | None,
) -> dict[str, str]:
    """Give the variables of an agent that differ from those of its image.

    given: those that somebody asked for.
    certificates: folder as `share_certificates` made it.
    """
    theirs = {**image, **given}
    ours = variables(theirs, proxy_url=url, public_dir=certificates, seen_at=certificates)
    # Docker can set variables of an image to nothing, but not take them away.
    made = theirs | {name: "" for name in removed(theirs) if name in theirs} | ours
    if preload_bundle is not None:
        made = preload_bundle.variables(made)
    return {name: value for name, value in made.items() if image.get(name) != value}


def share_certificates(public: Path, folder: Path) -> Path:
    """Lay out what clients need to trust the proxy, and nothing else, for users of other numbers."""
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    for name in (BUNDLE_FILE, CERTIFICATE_FILE):
        shutil.copyfile(public / name, folder / name)
        (folder / name).chmod(0o644)
    return folder


def mounts(certificates: Path, preload_bundle: PreloadBundle | None) -> list[str]:
    """Write Docker's flags for files of ours, at the paths that they have here."""
    words = bind(str(certificates), str(certificates))
    for target in ROOTS:
        words += bind(str(certificates / BUNDLE_FILE), target)
    if preload_bundle is not None:
        words += bind(str(PRELOADS), str(PRELOADS))
        words += bind(str(preload_bundle.folder), str(preload_bundle.folder), writable=True)
    return words


def agent_flags(network_of: str, *, sockets: bool = True) -> list[str]:
    """Write Docker's flags for the container of an agent.

    network_of: container whose network it joins, and whose processes: when that one ends, so does the agent.
    sockets: whether it may have Unix sockets with a path.
    """
    joined = f"container:{network_of}"
    return [
        *("--network", joined, "--pid", joined),
        *HARD,
        *("--security-opt", f"seccomp={profile.FILE if sockets else profile.STRICT_FILE}"),
        *("--pids-limit", str(_PIDS)),
        # Of 1 byte the kernel runs no handler of crashes: see `sandbox.init`.
        *("--ulimit", "core=1:1"),
    ]


def variable_flags(
    variables: Mapping[str, str], inherited: Mapping[str, str], file: Path
) -> list[str]:
    """Write Docker's flags for variables: others may read the words that a process was started with, and not these.

    inherited: what Docker's command line has itself. A value of that goes by its name.
    file: for the others, made for this user alone. What no such file can hold (lines, proxies) stands in the words.
    """
    named = [name for name, value in variables.items() if inherited.get(name) == value]
    rest = {name: value for name, value in variables.items() if name not in named}
    rows = [f"{name}={value}" for name, value in rest.items()]
    filed = [row for row in rows if _fits_in_file(row)]
    # Not in Docker's own environment: it would take a proxy's, or roots of ours, as meant for itself.
    with open(file, "x", encoding="utf-8", opener=_open_private) as lines:
        lines.writelines(f"{row}\n" for row in filed)
    said = [*named, *(row for row in rows if row not in filed)]
    return ["--env-file", str(file), *(word for one in said for word in ("--env", one))]


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _fits_in_file(row: str) -> bool:
    """Say whether Docker reads this row as it stands: a line of UTF-8 of less than 64 KiB, and no remark."""
    name = row.partition("=")[0]
    if name.lower().endswith("_proxy"):
        # Those of the person's own settings for Docker (`proxies`) would win over the file.
        return False
    try:
        size = len(row.encode())
    except UnicodeEncodeError:
        return False
    plain = name.split() == [name] and not name.startswith(("#", "\ufeff"))
    return plain and size < _LINE and not {"\n", "\r"} & set(row)


def asked_variables(wanted: tuple[str, ...]) -> dict[str, str]:
    """Read what `--env` was given: NAME=VALUE, or NAME alone for the value that it has here, if any."""
    pairs = (one.partition("=") for one in wanted)
    return {
        name: value if mark else os.environ[name]
        for name, mark, value in pairs
        if mark or name in os.environ
    }
