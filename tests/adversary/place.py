"""Where the cases are tried: programs of this folder run by themselves, on a machine of their own."""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from playhead.tests.support import machine, prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.machine import NONE

RESOLVER = {
    "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
    "/etc/nsswitch.conf": "hosts: files dns\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
"""Files of a machine on which 127.0.0.1 is asked for every name."""


def read_cases(path: Path) -> dict[str, Any]:
    """Read the cases that are beside a module: by libyaml where it is there, since every worker reads all of them."""
    read: dict[str, Any] = yaml.load(
        path.with_suffix(".yaml").read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return read


def told_by(module: str, *words: str, timeout_s: float = 900) -> Any:
    """Run a module of this folder to its end; give the JSON that it printed.

    Skips the test where it may have no machine of its own, with its reason.
    """
    done = prepared.run(
        [sys.executable, "-m", f"playhead.tests.adversary.{module}", *words],
        imports=prepared.FOR_OURS,
        text=True,
        timeout=timeout_s,
    )
    if done.returncode == NONE:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def enter_with_hosts(names: Iterable[str]) -> None:
    """Go on on a machine of its own, on which each of these names leads to loopback; end the process where there can be none."""
    hosts = f"127.0.0.1 localhost\n127.0.0.1 {' '.join(names)}\n"
    files = {**RESOLVER, "/etc/hosts": hosts, "/etc/nsswitch.conf": "hosts: files\n"}
    machine.enter_or_exit(0, files)


def need_client(case: Mapping[str, Any]) -> None:
    """Skip the test of what a client does with a secret where the modules of that client are missing, or are for the full counts."""
    if case["kind"] == "sdk" and not FULL:
        pytest.skip("SDKs are imported only with PLAYHEAD_FULL")
    for module in case.get("needs", ()):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"{module} is not installed")


@contextmanager
def in_memory() -> Iterator[Path]:
    """Give a folder that is gone afterwards; in memory where there is some, since nobody waits for a disk here."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as made:
        yield Path(made)


def configured(path: Path, config: dict[str, Any]) -> Path:
    """Write a configuration."""
    path.write_text(yaml.safe_dump(config))
    return path
