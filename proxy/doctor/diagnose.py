"""Diagnose a client from its probes: is it proxied, does it trust the CA, does transparent mode see it, is its clock virtual.

Each cell of the table is something that was seen, or *unknown* with the reason. Pure: what the clients are stands in
`probes`, running them in `run_probe` and `run`. A request that the proxy has *read* proves both that the client
follows it and that it trusts its certificate.
"""

import calendar
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from .agents import Agent
from .probes import Probe
from .run_probe import Outcome

_MOST_DETAIL = 200
_SAME_S = 600
"""Of two clocks that tell the same time."""
_DAY_S = 86400
_NOT_FOUND = (126, 127)
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
_WITH_PRELOAD = "With --determinism seed or full it comes to the proxy and trusts it, as it is."
_WITH_CAPTURE = "record --capture takes it to the proxy as it is."
_NOISE = re.compile(
    r"\s*(at |npm error A complete log|Node\.js v|Bun v|[\^~]+\s*$|\}|playhead-clock |\d\d:\d\d:\d\d\.\d+ [*<>{}] )"
)
"""Lines after the telling one: stack frames, versions, markers, what a probe says itself."""


class Answer(StrEnum):
    """What a cell of the table says."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """How a client stands to the proxy, with the variables alone."""

    OK = "ok"
    BYPASSED = "bypassed"
    UNTRUSTED = "untrusted"
    FAILED = "failed"
    ABSENT = "not installed"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer."""

    answer: Answer
    why: str = ""
    """Why not, or why it is not known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one client."""

    client: str
    status: Status
    proxied: Cell
    """It goes through the proxy with the variables."""
    trusted: Cell
    """It takes the certificate, with the variables."""
    captured: Cell
    """In the sandbox its request arrives, where no variable tells of a proxy."""
    clock: Cell
    """With the preloads it lives at the time of the tape."""
    preloaded: Cell
    """With the variables and the preloads it goes through the proxy and takes the certificate."""
    advice: str = ""
    """What to set or change; empty when there is nothing to do."""
    detail: str = ""
    """The client's own last words, one line; text from outside."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a client from the other side."""

    reached: bool = False
    """It came to the proxy."""
    asked: bool = False
    """The proxy read its request."""
    refused: bool = False
    """It broke off over the certificate, at the proxy or at the origin."""
    direct: bool = False
    """It came to the origin itself, past the proxy."""
    direct_asked: bool = False
    """The origin, with a certificate of ours, read its request."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A client that was run once."""

    outcome: Outcome
    seen: Seen


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds since 1970."""

    virtual_s: float
    real_s: float
    no_library: str = ""
    """Why programs that are linked with a C library have no preload, where they have none."""


_UNKNOWN = Cell(Answer.UNKNOWN)
_NO_TIME = "the time was over: doctor --all takes longer"


def diagnose(
    probe: Probe,
    unsandboxed: ProbeResult | None,
    sandboxed: ProbeResult | None,
    clocks: Clocks,
    *,
    again: ProbeResult | None = None,
    no_sandbox: str = "",
) -> Finding:
    """Say how a client stands to the proxy.

    outside: with the variables, and nothing else; None where it is not installed.
    inside: with the preloads, and in the sandbox without proxy variables.
    again: outside with variables and preloads, where it was tried.
    clocks: what the preloads were to tell then, and what it was.
    no_sandbox: why `sandboxed` was in none.
    """
    if unsandboxed is None or (
        _missing(unsandboxed) and (sandboxed is None or sandboxed.seen == Seen())
    ):
        detail = "" if unsandboxed is None else _last_words(unsandboxed.outcome.output)
        cells = (_UNKNOWN,) * 5
        return Finding(probe.name, Status.ABSENT, *cells, detail=detail)
    if unsandboxed.outcome.out_of_time:
        return untried(probe)
    proxied, trusted = _proxied(probe, unsandboxed), _trusted(probe, unsandboxed)
    status, advice = _status(probe, unsandboxed, proxied, trusted)
    preloaded = _preloaded(probe, again)
    if preloaded.answer is Answer.YES:
        advice = f"{advice} {_WITH_PRELOAD}".strip()
    captured = Cell(Answer.UNKNOWN, no_sandbox) if no_sandbox else _captured(probe, sandboxed)
    if captured.answer is Answer.YES and status in (Status.BYPASSED, Status.UNTRUSTED):
        advice = f"{advice} {_WITH_CAPTURE}".strip()
    clock = _clock(probe, sandboxed, clocks)
    detail = "" if status is Status.OK else _last_words(unsandboxed.outcome.output)
    cells = (proxied, trusted, captured, clock, preloaded)
    return Finding(probe.name, status, *cells, advice, detail)


def untried(probe: Probe) -> Finding:
    """Say that a client was not tried."""
    return Finding(probe.name, Status.UNTRIED, *(_UNKNOWN,) * 5)


def needs_more(result: ProbeResult) -> bool:
    """Say whether the variables alone were not enough for a client that was run with them."""
    if result.outcome.out_of_time:
        return False
    return not (result.seen.reached and result.seen.asked) and not _missing(result)


def _missing(result: ProbeResult) -> bool:
    """Say whether there was nothing behind a name on PATH."""
    return result.outcome.exit_code in _NOT_FOUND and result.seen == Seen()


def _proxied(probe: Probe, result: ProbeResult) -> Cell:
    if result.seen.reached:
        return Cell(Answer.YES)
    if result.seen.direct:
        return Cell(Answer.NO, "it went to the origin itself")
    if _UNRESOLVED.search(result.outcome.output):
        # The proxy resolves names; a client that does it itself is on its way past it.
        return Cell(Answer.NO, "it looked the name up itself")
    return Cell(Answer.UNKNOWN, f"{_ended(probe, result.outcome)} and came nowhere")


def _trusted(probe: Probe, result: ProbeResult) -> Cell:
    if result.seen.asked or result.seen.direct_asked:
        return Cell(Answer.YES)
    if not (result.seen.reached or result.seen.direct):
        return Cell(Answer.UNKNOWN, "it came nowhere")
    if _refuses(result):
        return Cell(Answer.NO, "it refuses the certificate")
    return Cell(Answer.UNKNOWN, f"{_ended(probe, result.outcome)} before it asked for anything")


def _refuses(result: ProbeResult) -> bool:
    # Some hang up without a word to the other side.
    return result.seen.refused or _UNTRUSTED.search(result.outcome.output) is not None


def _preloaded(probe: Probe, result: ProbeResult | None) -> Cell:
    if result is None or result.outcome.out_of_time:
        return Cell(
            Answer.UNKNOWN, _NO_TIME if result else "it was not tried: the variables are enough"
        )
    if result.seen.asked:
        return Cell(Answer.YES)
    return Cell(Answer.NO, f"{_ended(probe, result.outcome)}, and nothing was read of it")


def _captured(probe: Probe, result: ProbeResult | None) -> Cell:
    if result is None or result.outcome.out_of_time:
        return Cell(Answer.UNKNOWN, _NO_TIME if result else "it was not run there")
    if result.seen.asked:
        return Cell(Answer.YES)
    if not result.seen.reached:
        return Cell(Answer.NO, f"{_ended(probe, result.outcome)} and came nowhere")
    if _refuses(result):
        return Cell(Answer.NO, "it arrives, and refuses the certificate")
    return Cell(Answer.NO, f"it arrives; {_ended(probe, result.outcome)} before it asked")


def _clock(probe: Probe, result: ProbeResult | None, clocks: Clocks) -> Cell:
    if result is None or result.outcome.out_of_time:
        return Cell(Answer.UNKNOWN, _NO_TIME if result else "it was not run")
    if probe.clock is None:
        return Cell(Answer.UNKNOWN, "it shows no time")
    reported_s = find_time(f"{result.outcome.output}\n{result.outcome.left}", *probe.clock)
    if reported_s is None:
        return Cell(Answer.UNKNOWN, f"{_ended(probe, result.outcome)} and showed no time")
    if _same(reported_s, clocks.virtual_s):
        return Cell(Answer.YES)
    if _same(reported_s, clocks.real_s):
        why = f" (none for C programs: {clocks.no_library})" if clocks.no_library else ""
        return Cell(Answer.NO, f"it sees the real time: no preload reaches it{why}")
    return Cell(Answer.UNKNOWN, f"it sees another time: {reported_s:.0f} s since 1970")


def find_time(text: str, pattern: str, parts: str) -> float | None:
    """Find the first time in a text: seconds since 1970, or of the day where it tells no more; UTC.

    parts: of `strptime`, a space for each sign between them; none where they are seconds.
    """
    found = re.search(pattern, text)
    if found is None:
        return None
    if not parts:
        return float(found[1])
    numbers = " ".join(re.findall(r"\d+", found[1]))
    try:
        read = time.strptime(numbers, parts)
    except ValueError:
        return None
    day = calendar.timegm(read) if read.tm_year > 1900 else calendar.timegm(read) % _DAY_S
    return float(day)


def _same(reported_s: float, clock_s: float) -> bool:
    if reported_s < _DAY_S:
        apart = (reported_s - clock_s) % _DAY_S
        return min(apart, _DAY_S - apart) < _SAME_S
    return abs(reported_s - clock_s) < _SAME_S


def _status(probe: Probe, result: ProbeResult, proxied: Cell, trusted: Cell) -> tuple[Status, str]:
    if proxied.answer is Answer.NO:
        return Status.BYPASSED, probe.if_bypassed
    if trusted.answer is Answer.NO:
        return Status.UNTRUSTED, probe.if_untrusted
    if trusted.answer is not Answer.YES:
        return Status.FAILED, ""
    if result.outcome.exit_code != 0 and not probe.any_exit:
        advice = "It follows the proxy and trusts its certificate, but could not use the answer."
        return Status.FAILED, advice
    return Status.OK, ""


def _ended(probe: Probe, outcome: Outcome) -> str:
    if outcome.exit_code is None:
        return f"it did not end within {probe.timeout_s:g} s"
    return f"it ended with {outcome.exit_code}"


_COLUMNS = ("proxied", "trusted", "captured", "clock")


def render(findings: Sequence[Finding]) -> str:
    """Write the findings as a table for people, and below it what needs doing, and why."""
    result = [one for one in findings if one.status not in (Status.ABSENT, Status.UNTRIED)]
    left_out = [one.client for one in findings if one.status is Status.UNTRIED]
    absent = [finding.client for finding in findings if finding.status is Status.ABSENT]
    width = max((len(finding.client) for finding in result), default=0)
    lines = (
        [f"{'':<{width}}  {'  '.join(f'{name:<8}' for name in _COLUMNS)}".rstrip()]
        if result
        else []
    )
    for finding in result:
        answers = [getattr(finding, name).answer for name in _COLUMNS]
        lines.append(
            f"{finding.client:<{width}}  {'  '.join(f'{answer:<8}' for answer in answers)}".rstrip()
        )
    for finding in result:
        if finding.advice or finding.detail:
            row = (finding.status.value, finding.advice, finding.detail)
            lines += [
                "",
                f"{finding.client}: {row[0]}",
                *(f"  {text}" for text in row[1:] if text),
            ]
    lines += ["", *_reasons(result)]
    if left_out:
        lines += [f"not tried, which `playhead doctor --all` does: {', '.join(left_out)}"]
    if absent:
        lines += [f"not installed: {', '.join(absent)}"]
    return "\n".join(lines).strip("\n")


def _reasons(findings: Sequence[Finding]) -> Iterator[str]:
    """Say why not, each reason once."""
    reasons: dict[tuple[str, Cell], list[str]] = {}
    for finding in findings:
        for name in _COLUMNS:
            cell: Cell = getattr(finding, name)
            if cell.why:
                reasons.setdefault((name, cell), []).append(finding.client)
    for (name, cell), clients in sorted(reasons.items(), key=lambda row: _COLUMNS.index(row[0][0])):
        yield f"{name} {cell.answer}: {cell.why} ({', '.join(clients)})"


def render_json(findings: Sequence[Finding], agents: Sequence[Agent] = ()) -> str:
    """Write the findings as a JSON list, with the fields of `Finding`, and behind them the agents with theirs."""
    return json.dumps([*map(asdict, findings), *map(asdict, agents)], indent=2)


def _last_words(output: str) -> str:
    """Pick the last line that says something, safe to print."""
    lines = [line for line in output.splitlines() if "JAVA_TOOL_OPTIONS" not in line]
    telling = [line.strip() for line in lines if line.strip() and not _NOISE.match(line)]
    text = telling[-1] if telling else ""
    return "".join(c if c.isprintable() else "?" for c in text)[:_MOST_DETAIL]
