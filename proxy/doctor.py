"""Try every installed client through the proxy: which one goes past it, which one does not trust it, what to set.

Running (`examine`) and judging (`judge`) are apart: a judgement is a table of what was seen. A request that the
proxy has *read* proves both that the client follows it and that it trusts its certificate. What the clients are
stands in `probes`.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from .probes import Probe, probes
from .trust import environment

__all__ = ["Finding", "Probe", "Status", "examine", "judge", "probes", "render", "render_json"]

_MOST_OUTPUT = 64 * 1024
_MOST_DETAIL = 200
_UNTRUSTED = re.compile(
    r"certificate|self[- ]?signed|unable to get (local )?issuer|PKIX|x509|UnknownIssuer|SSL_?ERROR|"
    r"CERT_|SSLHandshake|trustAnchors|server verification failed",
    re.IGNORECASE,
)
_UNRESOLVED = re.compile(
    r"could ?n.t resolve|could not resolve|unable to resolve|getaddrinfo|name resolution|"
    r"name or service not known|no such host|UnknownHost|UnresolvedAddress|nodename nor servname|"
    r"ENOTFOUND|EAI_AGAIN",
    re.IGNORECASE,
)
_NOISE = re.compile(r"\s*(at |Node\.js v|Bun v|[\^~]+\s*$|\})")
"""Lines after the telling one: stack frames, versions, markers."""


class Status(StrEnum):
    """How a client stands to the proxy."""

    OK = "ok"
    BYPASSED = "bypassed"
    UNTRUSTED = "untrusted"
    FAILED = "failed"
    ABSENT = "not installed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one client."""

    client: str
    status: Status
    advice: str = ""
    """What to set or change; empty when there is nothing to do."""
    detail: str = ""
    """The client's own last words, one line; text from outside."""


async def examine(
    proxy_url: str,
    public_dir: Path,
    target: str,
    proxy_saw: Callable[[str], bool],
    origin_saw: Callable[[str], bool],
    *,
    clients: Sequence[Probe] | None = None,
    base: Mapping[str, str] | None = None,
    parallel: int = 4,
) -> tuple[Finding, ...]:
    """Run every probe through the proxy and judge it; findings stand in the order of the probes.

    target: https address behind the proxy, whose certificate is signed by our CA, so that a client that goes
        past the proxy is not refused and is seen at the origin. Go never proxies loopback, other clients do.
    proxy_saw, origin_saw: say whether a request with this token in its path was read there.
    base: environment that the children's is made of; by default the process's own.
    parallel: how many clients run at once.
    Raises: EngineError, when the children's environment cannot be made.
    """
    base = os.environ if base is None else base
    chosen = probes(target, path=base.get("PATH")) if clients is None else clients
    child = environment(base, proxy_url=proxy_url, public_dir=public_dir)
    slots = asyncio.Semaphore(parallel)

    async def try_one(probe: Probe) -> Finding:
        if not probe.installed:
            return judge(probe, None, False, False)
        async with slots:
            exit_code, output = await _run(probe, child)
        return judge(probe, exit_code, proxy_saw(probe.token), origin_saw(probe.token), output)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(try_one(probe)) for probe in chosen]
    return tuple(task.result() for task in tasks)


def judge(
    probe: Probe,
    exit_code: int | None,
    proxy_saw: bool,
    origin_saw_direct: bool,
    output: str = "",
) -> Finding:
    """Say how a client stands to the proxy.

    exit_code: None when it did not end in time.
    origin_saw_direct: counts only where the proxy saw nothing; what passes the proxy arrives there as well.
    output: what the client said.
    """
    detail = _last_words(output)
    if not probe.installed:
        return Finding(probe.name, Status.ABSENT)
    if proxy_saw and (exit_code == 0 or probe.any_exit):
        return Finding(probe.name, Status.OK)
    if proxy_saw:
        advice = "It follows the proxy and trusts its certificate, but could not use the answer."
        return Finding(probe.name, Status.FAILED, advice, detail)
    if origin_saw_direct:
        return Finding(probe.name, Status.BYPASSED, probe.if_bypassed, detail)
    if _UNTRUSTED.search(output):
        return Finding(probe.name, Status.UNTRUSTED, probe.if_untrusted, detail)
    if _UNRESOLVED.search(output):
        # The proxy resolves names; a client that does it itself is on its way past it.
        return Finding(probe.name, Status.BYPASSED, probe.if_bypassed, detail)
    if exit_code is None:
        advice = (
            f"It gave no answer within {probe.timeout_s:g} s and reached neither proxy nor origin."
        )
        return Finding(probe.name, Status.FAILED, advice, detail)
    advice = f"It ended with {exit_code} and reached neither proxy nor origin."
    return Finding(probe.name, Status.FAILED, advice, detail)


def render(findings: Sequence[Finding]) -> str:
    """Write the findings as a table for people, what needs doing below each client."""
    width = max((len(finding.client) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.client:<{width}}  {finding.status}")
        indent = " " * (width + 2)
        lines += [indent + text for text in (finding.advice, finding.detail) if text]
    return "\n".join(lines)


def render_json(findings: Sequence[Finding]) -> str:
    """Write the findings as a JSON list, with the fields of `Finding`."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)


async def _run(probe: Probe, child: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a probe in a folder of its own; its exit code, None when it was killed, and what it said."""
    with tempfile.TemporaryDirectory(prefix="playhead-doctor-") as folder:
        _lay_out(Path(folder), probe.files)
        try:
            process = await asyncio.create_subprocess_exec(
                *probe.command,
                env=child,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # so that what it starts ends with it
            )
        except OSError as error:
            return 127, str(error)
        output = bytearray()
        try:
            async with asyncio.timeout(probe.timeout_s):
                assert process.stdout is not None
                while data := await process.stdout.read(_MOST_OUTPUT):
                    output += data[: _MOST_OUTPUT - len(output)]
                exit_code: int | None = await process.wait()
        except TimeoutError:
            exit_code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return exit_code, output.decode(errors="replace")


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def _last_words(output: str) -> str:
    """Pick the last line that says something, safe to print."""
    lines = [line for line in output.splitlines() if "JAVA_TOOL_OPTIONS" not in line]
    telling = [line.strip() for line in lines if line.strip() and not _NOISE.match(line)]
    text = telling[-1] if telling else ""
    return "".join(c if c.isprintable() else "?" for c in text)[:_MOST_DETAIL]
