"""Make what a branch declares out of the words of its command line, and check all of it before anything runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ...config import Answer, Config, LiveRule, parse_match
from ...config.experiments.answers_file import load_answers
from ...config.parse_values import parse_host, parse_reason
from ...store import RunInfo, Store
from ...tape.diff.divergence_types import one_line
from ...tape.exchange import Exchange, RequestClass, Seq
from ...tape.matching.index import reclassify
from ...tape.policy.branch import (
    HYPOTHETICAL,
    Branch,
    HypotheticalAnswer,
    RequestChange,
    SandboxRoute,
    parse_live_class,
    parse_route,
)
from ...tape.policy.refusal import is_grpc
from ...tape.records.events import EventKind
from ...tape.shell_words import shell_word
from ...timeline.reading.logged_place import split_place
from ..errors import EngineError
from ..file_or_editor_text import edit_text, read_file


@dataclass(frozen=True, slots=True)
class Asked:
    """The words of a branch."""

    at: int
    answer: Path | None = None
    edit: bool = False
    system: Path | None = None
    request_change: Path | None = None
    live: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    answers: Path | None = None
    reason: str | None = None

    def check(self) -> None:
        """Check what can be checked without a tape. Raises: ValueError, whose text says what would be right."""
        given = {
            "--answer": self.answer is not None,
            "--edit": self.edit,
            "--system": self.system is not None,
            "--request-change": self.request_change is not None,
        }
        changes = [name for name, is_given in given.items() if is_given]
        if len(changes) > 1:
            raise ValueError(
                f"{' and '.join(changes)} change the same exchange; expected one of them"
            )
        if self.reason is None and (self.live or self.routes):
            raise ValueError("--live and --route need a --reason: why this may leave")
        if self.reason is not None and not (self.live or self.routes):
            raise ValueError("--reason goes with --live or --route")
        if changes and changes[0] in ("--system", "--request-change") and not self.live:
            raise ValueError(
                f"{changes[0]} asks the model anew, which sends something; add --live inference --reason TEXT"
            )


def declare(store: Store, tape: RunInfo, config: Config, asked: Asked) -> Branch:
    """Give what is declared.

    Raises: EngineError, saying what is missing and how to supply it; ConfigError; LogCorrupt.
    """
    try:
        asked.check()
        recorded = find_point(store, tape, config, asked.at)
        reason = parse_reason(asked.reason) if asked.reason is not None else ""
        live = tuple(_read_live(store, tape, asked.live, reason))
        routes = tuple(_read_routes(asked.routes, reason))
    except ValueError as error:
        raise EngineError(str(error), "nothing was run") from error
    count = len(live) + len(routes)
    if count > config.live_max:
        raise EngineError(
            f"{count} hosts and routes are declared, and live_max is {config.live_max}",
            "name fewer hosts, or raise live_max in the configuration",
        )
    answers: tuple[HypotheticalAnswer, ...] = ()
    if asked.answers is not None:
        answers = tuple(
            HypotheticalAnswer(one.match, _hypothetical(one.answer))
            for one in load_answers(asked.answers)
        )
    return Branch(
        Seq(asked.at),
        live,
        routes,
        answers,
        _read_answer(recorded, asked),
        _read_change(recorded, asked, live),
    )


def find_point(
    store: Store, tape: RunInfo, config: Config, at: int, given_as: str = "--at"
) -> Exchange:
    """Find the exchange at a point. Raises: ValueError, where none can be a point there.

    given_as: what the command line calls it.
    """
    last = store.runs.reload(tape).exchanges
    found = store.exchanges.find(tape, Seq(at)) if 0 < at < 1 << 63 else None
    if not last:
        raise ValueError(
            f"{given_as} {at}: the tape of {tape.id!r} holds no exchange: record it again; its receipt says why:"
            f" playhead receipt {shell_word(tape.id)}"
        )
    if found is None:
        raise ValueError(
            f"{given_as} {at}: run {tape.id!r} has no such exchange; expected one from 1 to {last},"
            f" see: playhead show {shell_word(tape.id)}"
        )
    exchange = reclassify(found, config.classes)
    request = exchange.request
    what = ""
    if request.method == "CONNECT":
        what = "is a tunnel that failed"
    elif exchange.request_class is RequestClass.TELEMETRY:
        what = "is telemetry, on which nothing depends"
    elif exchange.websocket is not None:
        what = "is a WebSocket, which is one exchange from its beginning to its end"
    elif is_grpc(request):
        what = "is gRPC, which streams both ways"
    if what:
        raise ValueError(f"{given_as} {at}: exchange {at} {what}, and no point; choose another")
    return exchange


def find_hosts(store: Store, tape: RunInfo, kind: RequestClass) -> list[str]:
    """Give the hosts that a class has on a tape, in the order of their first request. Raises: LogCorrupt."""
    found: dict[str, None] = {}
    for event in store.events.all(tape):
        if event.kind is EventKind.INTENT and event.data["request_class"] == kind.value:
            place = split_place(event.data["url"])
            if place is not None and event.data["method"] != "CONNECT":
                found[place[1]] = None
    return list(found)


def _read_live(
    store: Store, tape: RunInfo, texts: Iterable[str], reason: str
) -> Iterable[tuple[LiveRule, RequestClass]]:
    for text in texts:
        kind, named = parse_live_class(text, parse_host)
        hosts = named or find_hosts(store, tape, kind)
        if not hosts:
            raise ValueError(
                f"--live {text}: run {tape.id!r} has no request of class {kind.value}, so no host of it is known;"
                f" name it, as --live {kind.value}=api.example.com"
            )
        for host in hosts:
            yield live_rule(host, reason), kind


def live_rule(host: str, reason: str) -> LiveRule:
    """Give the rule under which all of a host goes live."""
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return LiveRule(parse_match(f"* *://{shown}"), reason)


def _read_routes(texts: Iterable[str], reason: str) -> Iterable[SandboxRoute]:
    for text in texts:
        try:
            yield parse_route(text, reason)
        except ValueError as error:
            raise ValueError(f"--route: {error}") from None


def _hypothetical(answer: Answer) -> Answer:
    return Answer(answer.status, answer.headers, answer.body, HYPOTHETICAL)


def _read_answer(recorded: Exchange, asked: Asked) -> Answer | None:
    if asked.answer is None and not asked.edit:
        return None
    from ...tape.edits.edit_answer import edit_answer, read_plain_answer  # reads every dialect

    if asked.answer is not None:
        name, body = str(asked.answer), read_file(asked.answer)
    else:
        name, body = (
            "the edited answer",
            edit_text(read_plain_answer(recorded), f"answer-{asked.at}"),
        )
    try:
        return edit_answer(recorded, body)
    except ValueError as error:
        raise EngineError(
            f"{name} cannot be the answer of exchange {asked.at}: {one_line(str(error))}",
            "nothing was run; `playhead branch --edit` begins with the recorded answer",
        ) from error


def _read_change(
    recorded: Exchange, asked: Asked, live: Iterable[tuple[LiveRule, RequestClass]]
) -> RequestChange | None:
    file = asked.system or asked.request_change
    if file is None:
        return None
    from ...tape.edits.edit_model_request import change_request
    from ...tape.edits.find_json_error import parse_json

    flag = "--system" if asked.system is not None else "--request-change"
    at, request = asked.at, recorded.request
    if recorded.request_class is not RequestClass.INFERENCE:
        raise EngineError(
            f"{flag}: exchange {at} is no call of a model ({recorded.request_class.value}), and only these are asked otherwise",
            "choose another --at, see: playhead show RUN",
        )
    hosts = {rule.match.host for rule, kind in live if kind is RequestClass.INFERENCE}
    if request.host.lower() not in hosts:
        raise EngineError(
            f"{flag}: exchange {at} asks {request.host}, which --live does not name",
            f"add --live inference={request.host}",
        )
    text = read_file(file)
    try:
        if asked.system is not None:
            change = RequestChange(system=text.decode())
        else:
            patch = parse_json(text, "the change")
            if not isinstance(patch, dict):
                raise ValueError("$: expected an object, as RFC 7396 lays over the request")
            change = RequestChange(patch=patch)
        change_request(request, change)
    except ValueError as error:
        raise EngineError(
            f"{file} cannot change exchange {at}: {one_line(str(error))}", "nothing was run"
        ) from error
    return change
