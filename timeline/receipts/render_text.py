"""Runs, exchanges and receipts as plain text for a terminal.

Recorded text comes from models and strangers: everything that could move a cursor or change a colour is
shown as an escape, and every line is bounded.
"""

import codecs
import contextlib
import json
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from ...config import Mode
from ...store import RunInfo, RunStatus
from ...tape.diff.divergence_types import DivergenceKind
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
from ...tape.policy.limits import show_usd
from ...tape.policy.retention import Sentence
from ..reading.contract_row import ContractRow
from .answers.root_divergence import START_UP
from .branch import BranchAccount
from .effects import Effect, describe_outcome
from .receipt import (
    Ended,
    GapRow,
    GateRow,
    InjectedRow,
    LimitsRow,
    OptIn,
    Receipt,
    exit_code,
)

_WIDTH = 160
_BODY_CHARS = 20_000
_HEADERS = 200
_ROWS = 12
_MESSAGES = 200
_DRIFTED = DivergenceKind.DRIFTED.value
_TEXT = 400
_SENTENCES = 1000
"""Characters of a warning: what was seen, and what to do about it."""
_ADVICE = 20_000
"""Characters of what names flags to be typed: twice the longest name and more, since part of a flag is another."""
_utf8 = codecs.getincrementaldecoder("utf-8")


def plain(text: str, limit: int = _WIDTH) -> str:
    """Give text that is safe to print: one line, no control characters, bounded."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii", "replace")
        for char in text[: limit * 2].encode("utf-8", "backslashreplace").decode("utf-8")
    )
    return shown if len(shown) <= limit and len(text) <= limit * 2 else shown[: limit - 1] + "…"


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
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def plain_lines(text: str) -> str:
    """Give a text of several lines that is safe to print."""
    return "\n".join(plain(line, 2000) for line in text.splitlines())


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
    lines += [f"  {plain(one.run.name, 60)}: {plain(one.reason)}" for one in stay[:_ROWS]]
    if len(stay) > _ROWS:
        lines.append(f"  … and {len(stay) - _ROWS} more")
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
    lines += [f"  {plain(one.run.name, 60)}: {plain(one.reason)}" for one in stay[:_ROWS]]
    if len(stay) > _ROWS:
        lines.append(f"  … and {len(stay) - _ROWS} more")
    return "\n".join(lines)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Align columns."""
    kept = [list(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*kept, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in kept
    )


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
        parts.append(plain(f"withheld from the client: {exchange.withheld}", _TEXT))
    parts += [plain(f"contract violated: {row.text}", _TEXT) for row in contracts]
    parts += [f"warning: {plain(text)}" for text in exchange.warnings[:_ROWS]]
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
    return [plain(f"model call ({found.dialect}): {shown or 'nothing stated'}", 2 * _WIDTH)]


def _messages(websocket: WebSocketSummary, messages: Iterable[Message]) -> str:
    lines = []
    for message in islice(messages, _MESSAGES):
        arrow = "→" if message.from_client else "←"
        told = message.kind.value if message.kind is not MessageKind.TEXT else ""
        shown = (
            plain(
                mark_replaced(message.data[: 4 * _WIDTH], message.secrets).decode(
                    "utf-8", "replace"
                )
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
        with contextlib.suppress(ValueError, RecursionError):
            indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
            # Deep nesting is mostly indentation: then the body as it is says more.
            text = indented if len(indented) <= 4 * _BODY_CHARS else text
    return "\n" + plain_lines(text) + (f"\n… {more} bytes more" if more > 0 else "")


def render_receipt(receipt: Receipt) -> str:
    """Show a receipt."""
    counts = receipt.counts
    lines = [f"── receipt of {plain(receipt.run)} " + "─" * 20]
    if receipt.mode == "playback":
        verdict = _verdict(receipt)
        what = f"branch of {plain(receipt.parent or '?')} at {receipt.branch.at}"
        if not receipt.branch:
            what = f"{verdict}: replay of {plain(receipt.parent or '?')}"
        lines.append(f"{what}{_standing(receipt)}")
        if receipt.ended.command or receipt.recorded.command:
            lines += _commands(receipt)
        matched = sorted((+receipt.matched).items())
        how = plain(", ".join(f"{count} {_how(count, name)}" for name, count in matched))
        lines.append(
            f"served {counts['served']}{f' ({how})' if how else ''}, stubbed {counts['stubbed']}, "
            f"live {counts['live']}, refused {counts['refused']}, unused {counts['unused']}, "
            f"egress attempts {len(receipt.egress)}"
        )
        lines += render_branch(receipt.branch)
        lines += _beside(receipt)
    else:
        lines.append(f"{receipt.status}: {counts['recorded']} exchanges recorded")
        lines += [f"NOT RECORDED: {plain(text, _TEXT)}" for text in receipt.unrecorded[:_ROWS]]
    lines += _telemetry(receipt.telemetry)
    lines += _replaced(receipt)
    lines += [_gap(row) for row in receipt.gaps[:_ROWS]]
    if receipt.stopped is not None:
        lines.append(_stopped(receipt.stopped))
    if receipt.limits is not None:
        lines += _limits(receipt.limits)
    lines += _rows(
        "model drift allowed",
        [_opt_in(one) for one in receipt.model_drift],
        len(receipt.model_drift),
    )
    lines += _effects(receipt)
    lines += [plain(line, _TEXT) for line in receipt.file_effects.lines()]
    lines += _rows("injected on purpose", [_injected(row) for row in receipt.injected])
    lines += _rows(
        "contract violations", [f"seq {row.seq}  {row.text}" for row in receipt.contracts]
    )
    lines += _rows("held by gates", [_gate(row) for row in receipt.gates])
    lines += _divergences(receipt)
    lines += _rows(
        "refused",
        [
            f"seq {row['seq']}  {row['method']} {row['url']}: {row['reason']}"
            for row in receipt.refused
        ]
        if not receipt.divergences
        else [],
        len(receipt.refused),
    )
    lines += _rows(
        "left on the tape, never asked for",
        [
            f"seq {row['seq']}  {row['method']} {row['url']}"
            + (" (outcome unknown)" if "outcome" in row else "")
            for row in receipt.unused
        ],
        counts["unused"],
    )
    lines += _rows(
        "live",
        [f"seq {row['seq']}  {row['method']} {row['url']}: {row['reason']}" for row in receipt.live]
        + [_service(row) for row in _told(receipt, "services")],
    )
    lines += _rows(
        "sandboxed",
        [
            f"seq {row['seq']}  {row['method']} {row['url']}: {row['reason']}"
            for row in receipt.branch.sandboxed
        ],
        counts["sandboxed"],
    )
    lines += _rows(
        "hypothetical",
        [
            f"seq {row['seq']}  {row['method']} {row['url']}"
            + (f" (in the place of tape seq {row['in_place_of']})" if row["in_place_of"] else "")
            for row in receipt.branch.hypothetical
        ],
        counts["hypothetical"],
    )
    lines += _rows(
        "failed below HTTP",
        [
            f"seq {row['seq']}  {row['kind']} in {row['phase']}: {row['text']}"
            for row in receipt.faults
        ],
    )
    lines += _rows(
        "named or spelled in more than one way", [_claims(row) for row in receipt.claims]
    )
    lines += _rows("unfinished at the end", [f"seq {seq}" for seq in receipt.unfinished])
    lines += _rows(
        "changed while the command ran",
        [f"{row['path']}: {row['what']}" for row in receipt.changed],
    )
    lines += _rows("came to nothing", [_came_to_nothing(row) for row in receipt.attempts])
    lines += _rows("tried to leave, denied", [_attempt(row) for row in receipt.egress])
    lines += _rows(
        "sockets past the proxy",
        [
            f"{row['protocol']} {row['address']}:{row['port']} by {row['process']}"
            for row in receipt.foreign
        ],
    )
    lines += _rows(
        "effects that were not told to a sink",
        [f"{count} to the {name}" for name, count in sorted(receipt.sink_lost.items())],
    )
    lines += _sandbox(receipt)
    lines += _determinism(receipt.determinism)
    lines += _rows("warnings", receipt.warnings, limit=_SENTENCES)
    lines += _rows("hints", [row["text"] for row in receipt.hints])
    if receipt.mode == "playback":
        lines.append(f"{_containment(receipt)}; level {receipt.level}")
        code = exit_code(receipt)
        if receipt.status == RunStatus.RECOVERED.value:
            lines.append(
                f"exit code {code}: its process died, so the end of its log may be missing"
            )
        elif code == ExitCode.UNTESTABLE and receipt.changed:
            lines.append(f"exit code {code}: what it rests on was changed, so nobody knows")
        elif code == ExitCode.UNTESTABLE and receipt.lacks_answer:
            lines.append(f"exit code {code}: the tape has not all of an answer, so nobody knows")
        elif code and receipt.branch and code in (ExitCode.DIVERGED, ExitCode.UNTESTABLE):
            lines.append(f"exit code {code}: {explain_branch(receipt)}")
        elif code == ExitCode.UNTESTABLE and (receipt.gaps or receipt.tape_gap):
            lines.append(f"exit code {code}: not all was written, so nobody knows")
        elif code:
            lines.append(f"exit code {code}: {ExitCode(code).receipt}")
    return "\n".join(lines)


def render_branch(branch: BranchAccount) -> list[str]:
    """Say from where the answers of a branch came, and what it declared."""
    told = branch.declared
    if told is None:
        return []
    came = (
        f"came to its point with seq {branch.reached}"
        if branch.reached
        else "NEVER CAME TO ITS POINT"
    )
    counts = (
        (branch.before, "from the tape before it"),
        (branch.after, "from the tape since"),
        (len(branch.hypothetical), "hypothetical"),
        (len(branch.sandboxed), "sandboxed"),
        (len(branch.asked_otherwise), "asked otherwise than the agent did"),
    )
    lines = [f"{came}: " + ", ".join(f"{count} {what}" for count, what in counts if count)]
    changed = ", ".join(map(str, told["changes"]))
    declared = [f"another {changed} at {branch.at}"] if changed else []
    declared += [f"{row[0]} live at {row[1]} ({row[2]})" for row in told["live"]]
    declared += [f"{row[0]} to the sandbox {row[1]} ({row[2]})" for row in told["routes"]]
    declared += [f"a hypothetical answer to {text}" for text in told["answers"]]
    return lines + _rows("declared", declared)


def explain_branch(receipt: Receipt) -> str:
    """Say why a branch came to nothing."""
    at = receipt.branch.at
    if receipt.limits is not None and receipt.limits.reached:
        return "a limit was reached, and what would have used more was refused"
    if receipt.branch.reached is None and receipt.refused:
        return f"a request before exchange {at} is not as it was recorded"
    if receipt.refused:
        return "a request that is not on the tape was refused: nothing that was declared answers it"
    if receipt.stopped:
        return "it was stopped"
    if receipt.branch.reached is None:
        return f"exchange {at} was never asked for, so nothing was tried"
    return "not all was written, so nobody knows"


def _came_to_nothing(row: Mapping[str, Any]) -> str:
    """Say what came to nothing, and how often it did on the tape."""
    times = "" if row["count"] == 1 else f"{row['count']} times "
    by = f" by {row['process']}" if row["process"] else ""
    then = "" if row["recorded"] is None else f" ({row['recorded']} on the tape)"
    return f"{times}{row['kind']} to {row['target']}{by}: {row['detail']}{then}"


_REWRITTEN = "rewritten"
"""Beside another standing, too."""


def _verdict(receipt: Receipt) -> str:
    if receipt.faithful is None:
        return "still open"
    if exit_code(receipt):
        return "NOT FAITHFUL"
    verdict = "FAITHFUL"
    if receipt.standing not in ("", "sealed"):
        is_both = receipt.rewritten and receipt.standing != _REWRITTEN
        standing = f"{receipt.standing}, {_REWRITTEN}" if is_both else receipt.standing
        article = "AN" if standing[0] in "aeiou" else "A"
        verdict += f" TO {article} {standing.upper()} TAPE"
    drift = [one.allowed for one in receipt.model_drift if one.served]
    rest = receipt.faithful_but_for[len(drift) :]
    if drift and receipt.faithful_but_for:
        verdict += f" BUT FOR MODEL DRIFT, allowed as {plain(', '.join(drift))}"
    if rest:
        verdict += f"{', AND' if drift else ' BUT'} FOR {plain(', '.join(rest))}"
    return verdict


def _standing(receipt: Receipt) -> str:
    told = [receipt.standing] if receipt.standing not in ("", _REWRITTEN) else []
    if receipt.rewritten:
        told.append(f"{_REWRITTEN} by {', '.join(map(plain, receipt.rewritten))}")
    return f" ({', '.join(told)})" if told else ""


def _commands(receipt: Receipt) -> list[str]:
    """Say what was run and how it ended, then and now."""
    now, then = _ended(receipt.ended), _ended(receipt.recorded)
    lines = [f"command: {now}"]
    if now != then and receipt.recorded.command:
        lines.append(f"recorded: {then}")
    wrote, had = _wrote(receipt.ended), _wrote(receipt.recorded)
    if wrote:
        lines.append(f"stdout: {wrote}" + (f"; recorded: {had}" if had and had != wrote else ""))
    return lines


def _wrote(ended: Ended) -> str:
    """Give what a command wrote to stdout; empty where that is not known, or nothing."""
    if ended.stdout is None or not ended.stdout[1]:
        return ""
    return f"{ended.stdout[1]} bytes, hash {ended.stdout[0]}"


def _ended(ended: Ended) -> str:
    how = "" if ended.child_exit is None else f", ended with {ended.child_exit}"
    return f"{plain(shlex.join(ended.command), 100)}{how}" if ended.command else "none"


def _how(count: int, match: str) -> str:
    """Name a way in which answers matched."""
    if match == "profile":
        return "by profile"
    return f"unconditional answer{'s' * (count != 1)}" if match == "unconditional" else match


_SHOWN_PROGRAMS = 5
_RAN = 12
"""Programs that ran again that are shown."""


def _beside(receipt: Receipt) -> list[str]:
    """Say what differed and was reported alone."""
    lines = [
        f"{'refused' if row['extra'] else 'not asked for'}, as may be: {row['method']} {plain(row['url'])} ({row['sdk']} asks in the background)"
        for row in receipt.background
    ]
    if receipt.own_programs:
        told = ", ".join(receipt.own_programs[:_SHOWN_PROGRAMS])
        more = " ..." if len(receipt.own_programs) > _SHOWN_PROGRAMS else ""
        lines.append(f"passed, to programs of the command's own: {plain(told)}{more}")
    if receipt.capture is not None and receipt.capture["taken"]:
        taken = _times(receipt.capture["taken"], "connection")
        lines.append(f"captured: {taken} led to the proxy, whatever its client ignores")
    lines += _ran_again(receipt)
    lines += [plain(str(row)) for row in receipt.profiles.rows.values()]
    lines += [
        f"no profile for the client {plain(product, 60)}: record it twice, then `playhead learn FIRST SECOND --profile NAME`"
        " proposes one"
        for product in receipt.profiles.unprofiled
    ]
    if receipt.reordered_results:
        lines.append(f"reordered results: {receipt.reordered_results}")
    if receipt.headers_differ:
        told = ", ".join(f"{name} ({n})" for name, n in sorted(receipt.headers_differ.items()))
        lines.append(f"headers differ: {plain(told)}")
    if receipt.protocols_differ:
        told = ", ".join(f"{name} ({n})" for name, n in sorted(receipt.protocols_differ.items()))
        lines.append(f"protocols differ: {plain(told)}")
    if receipt.kind_alone:
        lines.append(
            f"replaced values: {receipt.kind_alone} served by their kind alone; the tape is of another store, whose values cannot be compared"
        )
    if receipt.credentials_merged:
        told = ", ".join(f"{name} ({n})" for name, n in sorted(receipt.credentials_merged.items()))
        lines.append(
            f"credentials merged: {plain(told)}; one stands for several on the tape, and no answer depended on which"
        )
    return lines


def _ran_again(receipt: Receipt) -> list[str]:
    """Say which programs a replay has run again: a proxy plays what they ask, and not what they do."""
    if receipt.mode != Mode.PLAYBACK.value:
        return []
    found = (receipt.sandbox or {}).get("programs") or ()
    if not found:
        return []
    told = ", ".join(f"{row['program']} ({row['count']})" for row in found[:_RAN])
    more = f" and {len(found) - _RAN} more" if len(found) > _RAN else ""
    return [f"local programs that ran again: {plain(told, 4 * _WIDTH)}{more}"]


def _replaced(receipt: Receipt) -> list[str]:
    """Say which answers have placeholders, and which were given as they had been recorded."""
    lines = []
    for what, count, found in (
        ("replaced", receipt.answers_replaced, receipt.replaced),
        ("as recorded", receipt.answers_as_recorded, receipt.as_recorded),
    ):
        if count:
            shown = found[:_ROWS]
            seqs = ", ".join(map(str, shown)) + (", …" if count > len(shown) else "")
            lines.append(f"answers with secrets {what}: {count} (seq {seqs})")
    if receipt.unloadable_keys:
        seqs = ", ".join(map(str, receipt.unloadable_keys[:_ROWS]))
        lines.append(f"  with a private key that cannot be loaded any more: seq {seqs}")
    return lines


def _gap(row: GapRow) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.since_ns / 1e9))
    if row.until_ns is None:
        return plain(f"GAP since {since}: nobody knows what is missing: {row.reason}", 2 * _WIDTH)
    lasted = (row.until_ns - row.since_ns) / 1e9
    what = f"{row.exchanges} exchanges and {row.records} rows of the log are missing"
    sent = f", {row.effects} effects were sent on unlogged" if row.effects else ""
    return plain(f"GAP at {since} for {lasted:.1f} s: {what}{sent}: {row.reason}", 2 * _WIDTH)


def _claims(row: Mapping[str, Any]) -> str:
    said = ", ".join(f"{one['kind']} {one['text']}".strip() for one in row["claims"])
    return f"seq {row['seq']}  {row['method']} {row['url']}: {said}"


def _told(receipt: Receipt, key: str) -> Sequence[Any]:
    """Give what was seen of the sandbox under a key; nothing where there was none."""
    rows: Sequence[Any] = (receipt.sandbox or {}).get(key, ())
    return rows


def _service(row: Mapping[str, Any]) -> str:
    failed = f", {row['failed']} in vain" if row["failed"] else ""
    return f"{row['service']}: {row['reason']} ({_times(row['connections'], 'connection')}{failed})"


def _attempt(row: Mapping[str, Any]) -> str:
    protocol = f"{row['protocol']} " if row.get("protocol") else ""
    process = f" by {row['process']}" if row.get("process") else ""
    count = f", {row['count']} times" if row.get("count", 1) > 1 else ""
    return f"{protocol}{row['target']}{process}{count}: {row['reason']}"


def _sandbox(receipt: Receipt) -> list[str]:
    """Show what was seen of the sandbox."""
    asked = [f"{row['name']} {row['type']}" for row in _told(receipt, "names")]
    lines = []
    if empty := ((receipt.sandbox or {}).get("files") or {}).get("empty"):
        lines.append(
            f"empty to the command, and what it wrote there is gone: {plain(', '.join(empty))}"
        )
    lines += _rows("names asked of DNS, answered with made-up addresses", asked)
    lines += _rows(
        "refused on loopback, as nothing listens there in the sandbox",
        [
            f"{row['target']} {_times(row['count'], 'time')}"
            f"{f' by {row["process"]}' if row['process'] else ''}"
            for row in _told(receipt, "refused")
        ],
    )
    lines += _rows(
        "path sockets of programs outside, within reach (--sandbox strict closes them)",
        list(_told(receipt, "sockets")),
    )
    lines += _rows(
        "named pipes within reach: too many to be closed (remove them, or work in another folder)",
        list(_told(receipt, "pipes_open")),
    )
    if unsearched := list(_told(receipt, "pipes_unsearched")):
        some = ", ".join([*unsearched[:2], *["..."][: len(unsearched) - 2]])
        lines.append(
            f"not searched for named pipes: {plain(some)} (sandbox.pipe_search gives the search more time)"
        )
    lines += _rows(
        "named pipes that were made or written to while the command ran",
        list(_told(receipt, "pipes_used")),
    )
    return lines


def _determinism(told: Mapping[str, Any] | None) -> list[str]:
    """Show what was seen of the command's clock and randomness."""
    if told is None:
        return []
    count = f"{told['preloaded']} of {_times(told['processes'], 'process', 'es')}"
    missing = told.get("missing", "")
    if told["level"] == "off":
        return [plain(f"determinism off: {missing}", 2 * _WIDTH)]
    lines = [f"determinism {told['level']}: {count} with the preload{_short(told)}"]
    lines += _rows("determinism is not whole", [missing] if missing else [])
    lines += _rows("without the preload", told["uncovered"])
    lines += _rows("looked at the clock more often than recorded", told["exhausted"])
    lines += _rows(
        "drew randomness of their own, as they may speak TLS", told.get("kernel_randomness", ())
    )
    lines += _rows("used, and not the same again", told.get("sources", ()))
    if told.get("libc") and told["uncovered"]:
        lines += _rows("programs other than Python and Node are not covered", [told["libc"]])
    return lines + _rows("failed in the preload", told["problems"])


def _short(told: Mapping[str, Any]) -> str:
    return ", their sleeps kept short" if told.get("sleeps") == "short" else ""


_UNREAD = "attempts to leave could not be read from packets here"


def _containment(receipt: Receipt) -> str:
    told = receipt.sandbox
    if not receipt.contained or told is None:
        return "not contained (no sandbox)"
    kind = "contained, strict" if told["strict"] else "contained"
    kind += ", files too" if told.get("files") else ""
    count = _times(told["counters"]["packets_out"], "packet")
    unread = "" if told.get("tapped", True) else f", {_UNREAD}"
    if receipt.contained_but_for:
        unread += f"; not plainly contained: {', '.join(receipt.contained_but_for)}"
    live = receipt.counts["live"]
    if receipt.branch and (live or receipt.counts["sandboxed"]):
        boxed = receipt.counts["sandboxed"]
        went = f"{_times(live, 'request')} went live, {_times(boxed, 'request')} to a sandbox"
        return f"{kind}: {count} left past the proxy, {went}, as declared{unread}"
    if live:
        sent = _times(live, "request")
        return f"{kind}: {count} left past the proxy, {sent} sent out by live rules{unread}"
    return f"{kind}: {count} left the machine{unread}"


def _times(count: int, what: str, plural: str = "s") -> str:
    return f"{count} {what}" + ("" if count == 1 else plural)


def _stopped(told: Mapping[str, Any]) -> str:
    who = told["by"] + (f" (pid {told['pid']})" if told["pid"] else "")
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["at_ns"] / 1e9))
    why = f": {told['reason']}" if told["reason"] else ""
    return plain(f"STOPPED by {who} at {at}{why}", 2 * _WIDTH)


def _limits(row: LimitsRow) -> list[str]:
    """Show each limit with what was used of it."""
    limits, used = row.limits, row.used
    texts = []
    if limits["calls"] is not None:
        texts.append(f"{used.calls} of {limits['calls']} calls")
    if limits["tokens"] is not None:
        texts.append(f"{used.tokens} of {limits['tokens']} tokens")
    if limits["usd"] is not None:
        most = show_usd(Decimal(str(limits["usd"])))
        texts.append(f"{show_usd(used.usd)} of {most} USD")
    if limits["repeats"] is not None:
        texts.append(f"at most {limits['repeats']} times the same in a row")
    lines = ["limits: " + ", ".join(texts)]
    if limits["calls"] is None:
        lines.append(f"  calls: {used.calls}")
    if limits["tokens"] is not None or limits["usd"] is not None:
        tokens = f"{used.input_tokens} in ({used.cached_tokens} cached), {used.output_tokens} out"
        unstated = f"; {used.unstated} model calls stated none" if used.unstated else ""
        lines.append(f"  tokens: {tokens}{unstated}")
    if limits["usd"] is not None and used.unpriced:
        lines.append(f"  price unknown of {used.unpriced} model calls: not in the sum")
    for one in row.reached:
        lines.append(f"  REACHED at seq {one['seq']}: {plain(one['reason'])}")
    return lines


def _opt_in(one: OptIn) -> str:
    if not one.served:
        return f"{one.allowed}: nothing needed it"
    seqs = ", ".join(map(str, one.seqs[:_ROWS])) + (" …" if one.served > _ROWS else "")
    return f"{one.allowed}: served {one.served}, seq {seqs}"


def _injected(row: InjectedRow) -> str:
    named = "" if row.rule.startswith(row.inject) else f" ({row.inject})"
    return f"seq {row.seq}  {row.rule}{named}, request {row.nth} that matches it"


def _gate(row: GateRow) -> str:
    what = row.ruling or "no decision in the log"
    who = f" by {row.by}" if row.by else ""
    why = f" ({row.why})" if row.why else ""
    return (
        f"seq {row.seq}  {what}{who} after {row.waited_s:.1f} s{why}: {row.method} {row.url}"
        if row.ruling
        else f"seq {row.seq}  {what}: {row.method} {row.url}"
    )


def _effects(receipt: Receipt) -> list[str]:
    if receipt.mode == "record":
        return _effect_rows("effects", receipt.effects)
    left = [effect for effect in receipt.effects if effect.left]
    answered = [effect for effect in receipt.effects if not effect.left]
    return [
        *_effect_rows("effects, executed by a live rule", left),
        *_effect_rows("effects, answered instead of executed", answered),
    ]


def _effect_rows(title: str, effects: Sequence[Effect]) -> list[str]:
    if not effects:
        return []
    lines = [f"{title}:"]
    for effect in effects[:_ROWS]:
        lines += _effect(effect)
    if len(effects) > _ROWS:
        lines.append(f"  … and {len(effects) - _ROWS} more")
    return lines


def _effect(effect: Effect) -> list[str]:
    note = f"  ← {plain(effect.note.upper())}" if effect.note else ""
    lines = [f"  seq {effect.seq}  {plain(f'{effect.method} {effect.url}', 90)}{note}"]
    if effect.summary:
        lines.append(f"         {plain(effect.summary, 120)}")
    return [*lines, f"         {plain(effect.answered_by)}: {plain(effect.outcome, 120)}"]


def render_effects(info: RunInfo, effects: Iterable[Effect], omitted: int) -> Iterator[str]:
    """Show the effects of a run, some lines each, as they are read."""
    head = f"run {plain(info.id)}: {plain(info.mode, 20)}, {info.status.value}"
    yield head + (f", plays {plain(info.parent)}" if info.parent else "")
    empty = True
    for effect in effects:
        empty = False
        yield from _effect(effect)
        if effect.key is not None:
            yield f"         idempotency key {effect.key.hex()}"
        if effect.gate is not None:
            by = f" by {effect.gate['by']}" if effect.gate["by"] else ""
            yield plain(
                f"         held by a gate: {effect.gate['ruling'] or 'no decision'}{by}", 200
            )
        if effect.drifted:
            yield f"         drifted: {plain(effect.drifted)}"
        if effect.divergence is not None:
            nearest = effect.divergence.get("nearest_seq")
            near = f", nearest on the tape is seq {nearest}" if nearest is not None else ""
            yield plain(f"         {effect.divergence['kind']}{near}")
            yield from _differences(effect.divergence)
    if omitted:
        yield f"  … and {omitted} more"
    if empty:
        yield "  no effects"


def render_divergences(receipt: Receipt) -> str:
    """List every divergence that the receipt holds, the root among them; empty where there is none."""
    if not receipt.divergences:
        return ""
    lines = ["all divergences, by seq:"]
    for row in receipt.divergences:
        lines += _divergence(row)
    more = receipt.divergence_count - len(receipt.divergences)
    return "\n".join([*lines, f"  … and {more} more"] if more > 0 else lines)


def _divergences(receipt: Receipt) -> list[str]:
    root = receipt.root
    if root is None or not receipt.divergences:
        return []
    lines = ["diverged:", *_divergence(root)]
    after = receipt.root_after
    if after is not None:
        lines.append(
            f"         after {plain(after.rule)} was injected into seq {after.seq}, which it may well follow from"
        )
    rule = root.get("rule")
    if rule:
        lines.append("         what would ignore it, in the configuration:")
        lines += [f"           {plain(line)}" for line in str(rule).split("\n")[:_ROWS]]
        if root.get("note"):
            lines.append(f"         but {plain(str(root['note']))}")
    count = receipt.followed.total()
    if count:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(receipt.followed.items()))
        lines.append(f"  followed by {count} more: {plain(kinds)}")
    return lines + _rows("  folded under it", [f"  {_folded(row)}" for row in receipt.folded])


def _folded(row: Mapping[str, Any]) -> str:
    place = f"seq {row['seq']} {row['method']} {row['url']}"
    if row["what"] == START_UP:
        return f"{START_UP} {place} ({row['kind']})"
    return f"{row['count']} {'retry' if row['count'] == 1 else 'retries'} of {place}"


def _telemetry(counts: Mapping[str, int]) -> list[str]:
    """Say how much programs sent on their own account."""
    total = sum(counts.values())
    if not total:
        return []
    words = {"served": "from the tape", "live": "live", "discarded": "discarded"}
    told = [f"{counts[key]} {word}" for key, word in words.items() if counts.get(key)]
    told += [f"{counts['refused']} refused"] if counts.get("refused") else []
    more = f" ({', '.join(told)})" if told else ""
    return [f"telemetry: {_times(total, 'request')}{more}"]


def _divergence(row: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  seq {plain(str(row['seq']), 20)}  {plain(str(row['kind']))}: "
        f"{plain(str(row['method']) + ' ' + str(row['url']), 100)}",
        f"         {plain(str(row['text']), _TEXT if row['kind'] != _DRIFTED else _ADVICE)}",
    ]
    lines += _differences(row)
    cause = row.get("cause")
    if cause:
        lines += [
            f"         {plain(str(cause['place']), 60)}: the {side} value came from {_origin(cause[side])}"
            for side in ("recorded", "asked")
            if cause[side]
        ]
    return lines


def _differences(row: Mapping[str, Any]) -> list[str]:
    return [
        f"         {plain(str(one['place']), 60)}: recorded "
        f"{plain(repr(one['recorded']), 90)}, asked {plain(repr(one['asked']), 90)}"
        for one in row.get("differences", ())[:3]
    ]


def _origin(row: Mapping[str, Any]) -> str:
    """Name an answer: by its seq on the tape, and by the request it was given to where that is another."""
    tape_seq, seq = row["tape_seq"], row["seq"]
    place = plain(str(row["place"]), 60)
    if tape_seq is None:
        return f"{place} of the answer to seq {seq}, which is not on the tape"
    also = f" (given to seq {seq})" if seq not in (None, tape_seq) else ""
    return f"{place} of the answer to seq {tape_seq} on the tape{also}"


def _rows(
    title: str, rows: Sequence[str], count: int | None = None, *, limit: int = _WIDTH
) -> list[str]:
    if not rows:
        return []
    lines = [f"{title}:"] + [f"  {plain(row, limit)}" for row in rows[:_ROWS]]
    more = (count if count is not None else len(rows)) - _ROWS
    return lines + ([f"  … and {more} more"] if more > 0 else [])
