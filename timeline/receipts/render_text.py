"""Runs, exchanges and receipts as plain text for a terminal.

Recorded text comes from models and strangers: everything that could move a cursor or change a colour is
shown as an escape, and every line is bounded.
"""

import codecs
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ...config import Mode
from ...store import RunInfo, RunStatus
from ...tape.exchange import (
    BODY,
    TARGET,
    Exchange,
    Headers,
    Message,
    MessageKind,
    Request,
    Response,
    Secret,
    WebSocketSummary,
)
from ...tape.exit_codes import ExitCode
from ...tape.policy.retention import Sentence
from ...tape.visible_text import show_visibly
from ..reading.contract_row import ContractRow
from ..reading.exact_body_values import read_json, render_json
from .answers.divergences import difference_lines
from .answers.left_on_tape import UNUSED
from .bounded_rows import omitted_of
from .command.nothing_recorded import SIGNALS, describe_end, find_refused_ports
from .effects import Effect, describe_outcome, effect_lines, effect_text
from .gaps import Gaps
from .receipt import Receipt, exit_code, has_diverged
from .safe_terminal_text import ROWS, TEXT, WIDTH, plain, plain_lines, table

_BODY_CHARS = 20_000
_HEADERS = 200
_MESSAGES = 200
_utf8 = codecs.getincrementaldecoder("utf-8")


MAX_SHOWN_BYTES = 64 * 1024
_MARKS = "⟦".encode(), "⟧".encode()


def mark_replaced(data: bytes, secrets: Iterable[Secret], part: str = BODY) -> bytes:
    """Put each placeholder in a text between `⟦` and `⟧`."""
    pieces, done = list[bytes](), 0
    for one in secrets:
        end = one.at + one.size
        if one.part == part and end <= len(data):
            pieces += (data[done : one.at], _MARKS[0], data[one.at : end], _MARKS[1])
            done = end
    return b"".join((*pieces, data[done:]))


def show_text(body: bytes) -> str:
    """Give the beginning of a body as text that is safe to show: no control characters but line ends and tabs."""
    text = body[:MAX_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return show_visibly(text, "\n\t")


def render_runs(runs: Sequence[RunInfo], outcomes: Mapping[int, str] | None = None) -> str:
    """List runs, oldest first.

    outcomes: a word for each, by the numbers of the runs.
    """
    if not runs:
        return "no runs yet: record one with `playhead record -- COMMAND`"
    rows = [("RUN", "MODE", "STATUS", "OUTCOME", "EXCHANGES", "BEGAN", "LABELS", "AGENT")]
    rows += [
        (
            plain(run.id, 60),
            plain(run.mode, 20),
            "archived" if run.is_only_in_archive else run.status.value,
            (outcomes or {}).get(run.number, "-"),
            str(run.exchanges) if run.parent is None else "-",
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.created_ns / 1e9)),
            plain(" ".join((*(["pinned"] if run.pinned else []), *run.labels)), 40),
            plain(run.agent, 60),
        )
        for run in runs
    ]
    return table(rows)


def render_collected(sentences: Sequence[Sentence], *, deleted: bool) -> str:
    """Show which runs go, or went, and which stay and why."""
    gone = [one for one in sentences if one.goes]
    stay = [one for one in sentences if not one.goes]
    what = "deleted" if deleted else "would be deleted"
    lines = [f"{what}: {plain(one.run.name, 60)}: {plain(one.reason)}" for one in gone]
    lines.append(f"{len(gone)} {what}, {len(stay)} stay")
    lines += [f"  {plain(one.run.name, 60)}: {plain(one.reason)}" for one in stay[:ROWS]]
    if len(stay) > ROWS:
        lines.append(f"  … and {len(stay) - ROWS} more")
    return "\n".join(lines)


def render_archived(
    sentences: Sequence[Sentence], refused: Sequence[tuple[str, str]], *, archived: bool
) -> str:
    """Show which runs were archived, or would be, and which stay and why."""
    why = dict(refused)
    gone = [one for one in sentences if one.goes and one.run.name not in why]
    stay = [one for one in sentences if not one.goes]
    what = "archived" if archived else "would be archived"
    lines = [f"{what}: {plain(one.run.name, 60)}: {plain(one.reason)}" for one in gone]
    lines += [f"not archived: {plain(name, 60)}: {plain(text)}" for name, text in refused]
    lines.append(f"{len(gone)} {what}, {len(stay) + len(refused)} stay")
    lines += [f"  {plain(one.run.name, 60)}: {plain(one.reason)}" for one in stay[:ROWS]]
    if len(stay) > ROWS:
        lines.append(f"  … and {len(stay) - ROWS} more")
    return "\n".join(lines)


def render_run(info: RunInfo, rows: Sequence[dict[str, Any]]) -> str:
    """Show a run: one line an exchange; `rows` come from `listing.rows`."""
    head = f"run {plain(info.id)}: {plain(info.mode, 20)}, {info.status.value}"
    if info.parent:
        head += f", plays {plain(info.parent)}"
    lines = [("SEQ", "CLASS", "VERDICT", "REQUEST", "OUTCOME")]
    lines += [
        (
            str(row["seq"]),
            plain(str(row["class"]), 20),
            plain(str(row["verdict"]), 20),
            plain(f"{row['method']} {row['url']}", 100),
            plain(str(row["outcome"]), 70),
        )
        for row in rows
    ]
    return f"{head}\n{table(lines)}"


def render_exchange(
    exchange: Exchange, messages: Iterable[Message] = (), contracts: Iterable[ContractRow] = ()
) -> str:
    """Show one exchange in full; bodies are bounded and shown as text where they are text.

    messages: those of a WebSocket; the first are shown.
    contracts: what checks have found in it.
    """
    request = exchange.request
    parts = [
        f"seq {exchange.seq}  {exchange.request_class.value}  {exchange.verdict.value}: "
        f"{plain(exchange.reason)}",
        f"fingerprint {exchange.fingerprint.hex()}",
        *_inference(exchange),
        "",
        plain(f"{request.method} {_marked_url(request)} {request.http_version}", 2000),
        *(plain(f"  ({kind} {name})", 500) for kind, name in request.names),
        _headers(request.headers),
        _body(request),
        "",
        f"outcome: {plain(describe_outcome(exchange))}",
    ]
    if exchange.response is not None:
        response = exchange.response
        reason = response.reason.decode("latin-1")
        parts += [
            plain(f"{response.http_version} {response.status} {reason}"),
            _headers(response.headers),
            f"({len(response.body)} bytes in {max(len(response.chunks), 1)} pieces, "
            f"head after {response.head_us / 1000:.1f} ms)",
            _body(response),
        ]
    if exchange.websocket is not None:
        parts.append(_messages(exchange.websocket, messages))
    if exchange.redactions:
        places = ", ".join(item.place for item in exchange.redactions)
        parts.append(plain(f"replaced by placeholders (⟦ ⟧): {places}", 2000))
    if exchange.withheld:
        parts.append(plain(f"withheld from the client: {exchange.withheld}", TEXT))
    parts += [plain(f"contract violated: {row.text}", TEXT) for row in contracts]
    parts += [f"warning: {plain(text)}" for text in exchange.warnings[:ROWS]]
    return "\n".join(part for part in parts if part is not None)


def _marked_url(request: Request) -> str:
    target = request.target
    for one in reversed(request.secrets):
        if one.part == TARGET:
            end = one.at + one.size
            target = f"{target[: one.at]}⟦{target[one.at : end]}⟧{target[end:]}"
    return f"{request.scheme}://{request.authority}{target}"


def _inference(exchange: Exchange) -> list[str]:
    from ..reading.inference import (
        find_inference,
    )  # reads every dialect: for one exchange, not for a listing

    found = find_inference(exchange)
    if found is None:
        return []
    told = {
        "asked": found.model,
        "served": found.served,
        "temperature": found.temperature,
        "top_p": found.top_p,
        "seed": found.seed,
        "tools": found.tools,
        "system": found.system,
    }
    shown = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
    return [plain(f"model call ({found.dialect}): {shown or 'nothing stated'}", 2 * WIDTH)]


def _messages(websocket: WebSocketSummary, messages: Iterable[Message]) -> str:
    lines = []
    for message in islice(messages, _MESSAGES):
        arrow = "→" if message.from_client else "←"
        told = message.kind.value if message.kind is not MessageKind.TEXT else ""
        shown = (
            plain(
                mark_replaced(message.data[: 4 * WIDTH], message.secrets).decode("utf-8", "replace")
            )
            if message.kind is MessageKind.TEXT
            else f"<{len(message.data)} bytes: {message.data[:32].hex()}>"
        )
        lines.append(f"  {message.at_us / 1000:10.1f} ms {arrow} {told:<6} {shown}")
    if websocket.messages > len(lines):
        lines.append(f"  … and {websocket.messages - len(lines)} more")
    if websocket.close is not None and websocket.close.reason:
        lines.append(f"closing reason: {plain(websocket.close.reason)}")
    return "\n".join(lines)


def _headers(headers: Headers) -> str:
    shown = [
        plain(f"  {name.decode('latin-1')}: {value.decode('latin-1')}", 500)
        for name, value in headers[:_HEADERS]
    ]
    if len(headers) > _HEADERS:
        shown.append(f"  … and {len(headers) - _HEADERS} more")
    return "\n".join(shown)


def _body(message: Request | Response) -> str:
    if not message.body:
        return ""
    coded = message.header(b"content-encoding")
    more = len(message.body) - _BODY_CHARS
    shown = mark_replaced(message.body[:_BODY_CHARS], message.secrets)
    try:
        # Not final: the limit may fall into the middle of a character.
        text = _utf8().decode(shown, final=more <= 0)
    except UnicodeDecodeError:
        kind = f" ({coded.decode('latin-1')})" if coded else ""
        return f"\n  <{len(message.body)} bytes{plain(kind)}: {message.body[:32].hex()}…>"
    media = message.header(b"content-type") or b""
    if b"json" in media and more <= 0:
        tree = read_json(text.encode("utf-8", "surrogatepass"))
        if tree is not None and not tree.lost:
            indented = render_json(tree.value)
            # Deep nesting is mostly indentation: then the body as it is says more.
            text = indented if len(indented) <= 4 * _BODY_CHARS else text
    return "\n" + plain_lines(text) + (f"\n… {more} bytes more" if more > 0 else "")


def render_effects(
    info: RunInfo, effects: Iterable[Effect], omitted: int, gaps: Gaps
) -> Iterator[str]:
    """Show the effects of a run, some lines each, as they are read; and the gaps, in which there may be more."""
    head = f"run {plain(info.id)}: {plain(info.mode, 20)}, {info.status.value}"
    yield head + (f", plays {plain(info.parent)}" if info.parent else "")
    empty = True
    for effect in effects:
        empty = False
        yield from effect_text(effect)
        if effect.key is not None:
            yield f"         idempotency key {effect.key.hex()}"
        if effect.gate is not None:
            yield plain(f"         {effect.gate_result}", 200)
        if effect.drifted:
            yield f"         drifted: {plain(effect.drifted)}"
        if effect.divergence is not None:
            nearest = effect.divergence.get("nearest_seq")
            near = f", nearest on the tape is seq {nearest}" if nearest is not None else ""
            yield plain(f"         {effect.divergence['kind']}{near}")
            yield from difference_lines(effect.divergence)
    if omitted:
        yield f"  … and {omitted} more"
    if empty:
        yield "  no effects" + (" outside of the gap" if gaps.rows else "")
    yield from (f"  {line}" for line in gaps.lines())


def render_divergences(receipt: Receipt) -> str:
    """List every divergence that the receipt holds, the root among them; empty where there is none."""
    return "\n".join(receipt.parts.divergences.all_lines(receipt.divergence_count))


def render_receipt(receipt: Receipt) -> str:
    """Show a receipt."""
    parts = receipt.parts
    requests, past_proxy = parts.requests, parts.past_proxy
    lines = [f"── receipt of {plain(receipt.run)} " + "─" * 20]
    if receipt.is_playback:
        lines += _playback(receipt)
    else:
        lines.append(requests.recorded_line(receipt.status))
        if parts.command.ended.child_exit == ExitCode.INTERRUPTED and requests.total:
            lines.append(
                "the command was interrupted (130): what it would have asked for after that is not on the tape"
            )
        lines += past_proxy.unrecorded_lines()
    lines += requests.telemetry_lines()
    lines += parts.secrets.lines()
    lines += parts.gaps.lines()
    if parts.gaps.rows and not receipt.is_playback:
        lines.append("the recording is not whole: free space where the store is, then record again")
    lines += parts.limits.lines()
    lines += parts.matches.drift_lines()
    recording = receipt.mode == Mode.RECORD.value
    lines += effect_lines(parts.effects, omitted_of(parts.effects), recording=recording)
    lines += [plain(line, TEXT) for line in parts.command.files.lines()]
    lines += parts.injected.lines()
    lines += parts.contracts.lines()
    lines += parts.gates.lines()
    lines += parts.divergences.lines(receipt.root_after, receipt.run)
    if not parts.divergences.rows:
        lines += requests.refused_lines()
    lines += parts.left_on_tape.lines(requests.counts[UNUSED])
    lines += requests.live_lines(parts.surroundings.services())
    lines += parts.branch.answer_lines(requests.counts)
    lines += requests.lines()
    lines += parts.surroundings.changed_lines()
    lines += past_proxy.lines()
    lines += parts.gaps.lines_of_sinks()
    lines += parts.surroundings.lines()
    lines += parts.advice.lines()
    lines += parts.matches.profiles.hint_lines()
    if receipt.is_playback:
        lines += _end(receipt)
    return "\n".join(lines)


def _playback(receipt: Receipt) -> Iterator[str]:
    """Say whether a playback was faithful, how its command ended, and how what it asked matched."""
    parts, counts = receipt.parts, receipt.parts.requests.counts
    parent = plain(receipt.parent or "?")
    what = f"{_verdict(receipt)}: replay of {parent}"
    if parts.branch:
        what = f"branch of {parent} at {parts.branch.at}"
    elif parts.resume:
        what = f"resumed: {parent}"
    yield f"{what}{parts.tape}"
    yield from parts.command.lines()
    how = parts.matches.summary()
    known = "outside of the gap: " if parts.gaps.rows else ""
    yield (
        f"{known}served {counts['served']}{f' ({how})' if how else ''}, stubbed {counts['stubbed']}, "
        f"live {counts['live']}, refused {counts['refused']}, unused {counts[UNUSED]}, "
        f"egress attempts {len(parts.past_proxy.egress)}"
    )
    yield from parts.branch.lines()
    yield from parts.resume.lines()
    yield from parts.background_reads.lines()
    yield from parts.past_proxy.passed()
    yield from parts.surroundings.ran_again()
    yield from parts.matches.lines()


def _verdict(receipt: Receipt) -> str:
    if receipt.faithful is None:
        return "still open"
    if exit_code(receipt):
        return "NOT FAITHFUL"
    drift = receipt.parts.matches.drift_allowed
    verdict = f"FAITHFUL{receipt.parts.tape.qualify()}"
    rest = receipt.faithful_but_for[len(drift) :]
    if drift and receipt.faithful_but_for:
        verdict += f" BUT FOR MODEL DRIFT, allowed as {plain(', '.join(drift))}"
    if rest:
        verdict += f"{', AND' if drift else ' BUT'} FOR {plain(', '.join(rest))}"
    return verdict


def _end(receipt: Receipt) -> Iterator[str]:
    """Say whether anything left the machine, and with what code a playback ends."""
    parts, counts = receipt.parts, receipt.parts.requests.counts
    containment = parts.surroundings.containment(
        counts["live"],
        counts["sandboxed"],
        branch=bool(parts.branch),
        by="behind the crash point" if parts.resume else "by live rules",
    )
    yield f"{containment}; level {receipt.level}"
    code = exit_code(receipt)
    if receipt.status == RunStatus.RECOVERED.value:
        yield f"exit code {code}: its process died, so the end of its log may be missing"
    elif code:
        yield f"exit code {code}: {explain_exit(receipt, ExitCode(code))}"


def explain_exit(receipt: Receipt, code: ExitCode) -> str:
    """Say why a playback ends with a code of ours."""
    parts = receipt.parts
    if code is ExitCode.UNTESTABLE and parts.surroundings.changed:
        return (
            "the store, the configuration or Playhead's own files changed, so the result is unknown"
        )
    if code is ExitCode.UNTESTABLE and parts.divergences.lacks_answer:
        return "the tape has not all of an answer, so nobody knows"
    if parts.branch and code in (ExitCode.DIVERGED, ExitCode.UNTESTABLE):
        return explain_branch(receipt)
    if parts.resume and code in (ExitCode.DIVERGED, ExitCode.UNTESTABLE):
        return _explain_resumed(receipt)
    if code is ExitCode.DIVERGED and not has_diverged(parts):
        return (
            "you answered for the tape at a breakpoint, so nobody knows how the run would have gone"
        )
    if code is ExitCode.UNTESTABLE and (parts.gaps.rows or parts.tape.gap):
        return "not all was written, so nobody knows"
    if code is ExitCode.UNTESTABLE and not parts.requests.total:
        return _explain_untested(receipt) or code.receipt
    return code.receipt


def _explain_untested(receipt: Receipt) -> str:
    """Say why nothing was asked; empty where nobody knows more than that."""
    ended = receipt.parts.command.ended.child_exit
    if any(row["count"] for row in receipt.parts.past_proxy.attempts):
        return "nothing was tested: the command came to the proxy, and asked for nothing there (see: came to nothing)"
    if not ended:
        return ""
    parts = receipt.parts
    ports = sorted(find_refused_ports(parts.surroundings.seen("refused"), parts.left_on_tape.rows))
    if ports:
        told = ", ".join(map(str, ports))
        return (
            f"nothing was tested: the command went past the proxy to port {told} of loopback, and the sandbox refused that:"
            f" replay with `sandbox: {{ports: [{told}]}}` in the configuration, as it was recorded (-c FILE)"
        )
    said = f"nothing was tested: {describe_end(ended)} and made no request through the proxy"
    if ended > SIGNALS:
        return said
    now, then = parts.command.ended.command, parts.command.recorded.command
    other = (
        f"It is not the recorded one, {plain(shlex.join(then))}. " if then and now != then else ""
    )
    return (
        f"{said}. {other}Its own output says why (often a variable or a package that was there when it was recorded);"
        " mend that, then replay again"
    )


def _explain_resumed(receipt: Receipt) -> str:
    """Say why a resumed run did not go on."""
    parts = receipt.parts
    if parts.limits.row is not None and parts.limits.row.reached:
        return "a limit was reached, and further requests were refused"
    if parts.limits.stopped:
        return "it was stopped"
    held = parts.gates.seqs
    refused = any(row["seq"] not in held for row in parts.requests.refused)
    if refused and parts.resume.reached is not None:
        return "a request was refused behind the crash point"
    more = "nothing but what was approved at a gate" if parts.resume.executed else "nothing"
    if refused:
        return f"a request is not the one that the crashed run has there, so {more} was sent"
    if parts.resume.reached is None and not parts.gaps.rows:
        return f"not all that the crashed run had asked for was asked for again, so {more} was sent"
    return "not all was written, so nobody knows"


def explain_branch(receipt: Receipt) -> str:
    """Say why a branch came to nothing."""
    parts, at = receipt.parts, receipt.parts.branch.at
    refused, reached = parts.requests.refused, parts.branch.reached
    if parts.limits.row is not None and parts.limits.row.reached:
        return "a limit was reached, and further requests were refused"
    if parts.limits.stopped:
        return "it was stopped"
    if reached is None and refused:
        return f"a request before exchange {at} is not as it was recorded"
    if refused:
        return "a request that is not on the tape was refused: nothing that was declared answers it"
    if parts.divergences.has_changed_before(reached):
        return (
            f"a request before exchange {at} is not as it was recorded; it was served all the same"
        )
    if reached is None and not parts.gaps.rows:
        return f"exchange {at} was never asked for, so nothing was tried"
    return "not all was written, so nobody knows"
