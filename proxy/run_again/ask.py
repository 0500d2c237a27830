"""`playhead ask`: send one recorded model call again, without its agent, and show how the answers spread.

The call goes by way of a proxy of its own, as a branch whose point it is: what is sent, and what came back, are in the store.
"""

import asyncio
import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import click

from ...config import Config, Listen, Mode
from ...store import RunInfo, Store
from ...tape.counted import counted
from ...tape.diff.divergence_types import one_line
from ...tape.edits.edit_model_request import change_request
from ...tape.exchange import Exchange, Request, RequestClass, RunId, Seq
from ...tape.exit_codes import ExitCode
from ...tape.policy.branch import Branch, RequestChange
from ...tape.policy.limits import show_usd as show_exact
from ...tape.records.events import EventKind
from ...tape.shell_words import shell_word
from ...timeline.reading.call_cost import has_prices
from ...timeline.state.calls_before import read_answer
from ..engine.event_loop import new_event_loop
from ..errors import EngineError
from ..file_or_editor_text import edit_text, read_file
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_tape
from ..run.launcher import own_control
from ..run.runtime import Runtime
from ..standard_streams import print_status
from .branch import NO_PRICES, Repeat, Spent, confirm, find_tape, limit_run, reserve, spent_json
from .branch_price import find_price, find_spent
from .declare_branch import find_point, live_rule
from .fill_in_credential import with_credential, without_framing
from .spread import describe, render, spread, to_json

_REASON = "asked again"
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    seq: int
    model: str | None = None
    system: Path | None = None
    edit: bool = False
    key_env: str | None = None

    def check(self) -> None:
        """Check what can be checked without a tape. Raises: ValueError, where two things are asked at once."""
        given = {"--model": self.model is not None, "--system": self.system is not None}
        given["--edit"] = self.edit
        named = [name for name, is_given in given.items() if is_given]
        if self.edit and len(named) > 1:
            raise ValueError(f"{' and '.join(named)}: edit the whole call, or change a part of it")


@dataclass(slots=True)
class _Sent:
    """What has been sent so far."""

    runs: list[RunId] = field(default_factory=list)
    """Of the calls that have ended."""
    spent: Spent = field(default_factory=Spent)
    """By these."""
    is_under_way: bool = False
    """Whether there is another call, which has not ended."""


class _Prepared(NamedTuple):
    """All that is needed before anything is sent."""

    tape: RunInfo
    recorded: Exchange
    branch: Branch
    request: Request
    """With a credential."""
    variable: str
    """The variable whose value that is; empty where there is none."""


def ask(config: Config, name: str, question: Question, repeat: Repeat, *, as_json: bool) -> int:
    """Ask; give the exit code.

    Raises: PlayheadError, before anything is sent.
    """
    if repeat.caps.usd is not None and not has_prices():
        raise EngineError(NO_PRICES, "install playhead[prices], or leave --cap out")
    restore_tape(config, name)
    with open_store(config, readonly=True) as store:
        prepared = _prepare(store, config, name, question)
        request = prepared.request
        one = find_price(store, prepared.tape, prepared.branch, only=Seq(question.seq))
    prepared = prepared._replace(branch=reserve(prepared.branch, repeat.caps, one))
    print_status(
        f"playhead: exchange {question.seq} of {prepared.tape.id!r} is sent to {request.host} again,"
        f" {counted(repeat.times, 'time')}"
    )
    for line in _say_changes(prepared.branch.change):
        print_status(f"  {line}")
    if prepared.variable:
        print_status(f"  with the key of {prepared.variable}, which {request.host} gets")
    print_status(f"  price: as recorded {one.show(repeat.times)}")
    if not repeat.yes:
        confirm()
    sent = _Sent()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_ask_all(config, prepared, repeat, sent))
    except KeyboardInterrupt:
        more = ", and one more was under way" if sent.is_under_way else ""
        print_status(f"playhead: interrupted after {len(sent.runs)} of {repeat.times}{more}")
        print_status(_say_spent(sent.runs, sent.spent))
        raise
    return _show(config, prepared, repeat, sent.runs, sent.spent, as_json=as_json)


def _prepare(store: Store, config: Config, name: str, question: Question) -> _Prepared:
    tape = find_tape(store, name)
    try:
        question.check()
        recorded = find_point(store, tape, config, question.seq, "SEQ")
        if recorded.request_class is not RequestClass.INFERENCE:
            raise ValueError(
                f"exchange {question.seq} is no call of a model ({recorded.request_class.value});"
                f" see: playhead show {shell_word(tape.id)}"
            )
        if recorded.request.spilled is not None:
            raise ValueError(f"exchange {question.seq} is too large to be asked again")
        change = _read_change(recorded, question)
        change_request(recorded.request, change)
    except ValueError as error:
        raise EngineError(one_line(str(error), 400), "nothing was sent") from error
    rule = live_rule(recorded.request.host.lower(), _REASON)
    at = _find_first(store, tape, recorded)
    branch = Branch(at, ((rule, RequestClass.INFERENCE),), change=change, alone=True)
    return _Prepared(tape, recorded, branch, *with_credential(recorded, question.key_env))


def _find_first(store: Store, tape: RunInfo, recorded: Exchange) -> Seq:
    """Find the first exchange with the same request: that one answers it."""
    for event in store.events.all(tape):
        if event.kind is EventKind.INTENT and event.data["fingerprint"] == recorded.fingerprint:
            return event.seq
    return recorded.seq


def _read_change(recorded: Exchange, question: Question) -> RequestChange:
    """Read how it is asked otherwise. Raises: ValueError; EngineError."""
    if question.edit:
        from ...tape.edits.find_json_error import parse_json

        tree = json.loads(recorded.request.body)
        text = json.dumps(tree, indent=2, ensure_ascii=False).encode()
        edited = parse_json(edit_text(text + b"\n", f"call-{recorded.seq}"), "the call")
        if not isinstance(edited, dict):
            raise ValueError("$: expected an object, as the recorded call is")
        return RequestChange(whole=edited)
    system = None if question.system is None else read_file(question.system).decode()
    patch = None
    if question.model is not None:
        tree = json.loads(recorded.request.body)
        if "model" not in tree:
            raise ValueError(
                "$.model: the call names its model elsewhere, as in its path; --model cannot change that"
            )
        patch = {"model": question.model}
    return RequestChange(system=system, patch=patch)


def _say_changes(change: RequestChange | None) -> Iterator[str]:
    if change is None:
        return
    if change.system is not None:
        yield f"another system prompt ({len(change.system):,} characters)"
    if change.patch is not None:
        yield f"another model: {one_line(str(change.patch['model']))}"
    if change.whole is not None:
        yield "as edited"


async def _ask_all(config: Config, prepared: _Prepared, repeat: Repeat, sent: _Sent) -> None:
    """Ask once or several times, each in a run of its own.

    sent: is told what was sent, as it is sent.
    """
    runs, spent, caps = sent.runs, sent.spent, repeat.caps
    own = replace(config, mode=Mode.PLAYBACK, control=own_control(config.control))
    runtime = Runtime(own, sole=prepared.tape.id)
    async with runtime:
        runtime.registry.branch = prepared.branch
        address = await runtime.listen(Listen("127.0.0.1", 0))
        for _ in range(repeat.times):
            limited = replace(own, limits=limit_run(own.limits, caps, spent, calls=1))
            runtime.registry.adopt(limited)
            sent.is_under_way = True
            await asyncio.to_thread(
                _send, address, prepared.request, str(runtime.ca.certificate_file)
            )
            open_run = await runtime.registry.find_sole_run()
            if open_run is None or open_run.info is None:
                raise EngineError("the call did not come to the proxy", "nothing was sent")
            sealing = runtime.registry.end(open_run, "the call was answered")
            if sealing is not None:
                await sealing
            sent.is_under_way = False
            meter = open_run.usage_meter
            if caps.usd is not None and meter is not None and meter.has_refused:
                break  # it was not sent
            runs.append(open_run.info.id)
            spent.add(await asyncio.to_thread(find_spent, runtime.store, open_run.info))
            if caps.usd is not None and spent.usd >= caps.usd:
                break


def _send(proxy: Listen, request: Request, ca: str) -> None:
    """Send a call by way of the proxy, and read its answer. Blocking."""
    if request.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            proxy.host, proxy.port, timeout=_PATIENCE_S, context=context
        )
        connection.set_tunnel(request.host, request.port)
        target = request.target
    else:
        connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=_PATIENCE_S)
        target = f"{request.scheme}://{request.authority}{request.target}"
    try:
        connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        fields = without_framing(request.headers)
        if not any(name.lower() == b"host" for name, _ in fields):
            connection.putheader("Host", request.authority)
        for name, value in fields:
            connection.putheader(name.decode("latin-1"), value)
        connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException) as error:
        print_status(f"playhead: {error}")  # how it failed is in the run
    finally:
        connection.close()


def _show(
    config: Config,
    prepared: _Prepared,
    repeat: Repeat,
    runs: list[RunId],
    spent: Spent,
    *,
    as_json: bool,
) -> int:
    recorded = describe(read_answer(prepared.recorded))
    answers, refused = list[str](), list[str]()
    with open_store(config, readonly=True) as store:
        for run in runs:
            kept = store.exchanges.find(store.runs.get(run), Seq(1))
            if kept is None or kept.verdict.value != "live":
                refused.append(kept.reason if kept is not None else "nothing was kept of it")
            elif kept.is_injected or kept.is_unsent:
                refused.append(f"it was not sent: {_say_instead(kept)}")
            elif kept.response is None:
                answers.append(f"failed: {kept.fault.text}" if kept.fault else "no answer")
            else:
                answers.append(describe(read_answer(kept)))
    unsent = repeat.times - len(runs)
    if unsent and repeat.caps.usd is not None:
        text = f"the cap of {show_exact(repeat.caps.usd)} USD has no room for another call: {spent.show_usd()} USD are used"
        refused.extend([text] * unsent)
    rows = spread(recorded, answers)
    if as_json:
        document = {
            "run": prepared.tape.id,
            "seq": prepared.recorded.seq,
            "runs": runs,
            "recorded_answer": recorded,
            "answers": to_json(rows),
            "refused": refused,
            **spent_json(spent),
        }
        click.echo(json.dumps(document, indent=1))
    else:
        for line in render(rows, len(answers), recorded):
            click.echo(line)
        for text in dict.fromkeys(refused):
            click.echo(f"refused {refused.count(text)}: {one_line(text)}")
        if unsent:
            print_status(f"playhead: stopped after {len(runs)} of {repeat.times}: the cap was reached; go on with --times {unsent}")  # fmt: skip
        print_status(_say_spent(runs, spent))
    return ExitCode.DIVERGED if refused else 0


def _say_instead(kept: Exchange) -> str:
    """Say what came in the place of an answer of the model."""
    if kept.fault is not None:
        return str(kept.fault.text)
    return describe(read_answer(kept)) if kept.response is not None else "nothing"


def _say_spent(runs: Sequence[RunId], spent: Spent) -> str:
    """Say how many calls were made, what they cost, and where they are."""
    return (
        f"playhead: {spent.show(f'{spent.usd:f}')};"
        f" runs {', '.join(runs[:3])}{' …' * (len(runs) > 3)}"
    )
