"""The usage of a run with limits: calls are counted at each decision, tokens and cost from each model answer.

The loop counts calls, so that many at the same time cannot pass a limit together. The store's writer, which is one
thread, reads tokens and money before the last byte of an answer is released, so that the request after it knows.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Protocol

from blake3 import blake3
from mitmproxy import http

from ...config import Classes, Limits
from ...config.targets.request_interpretations import Ways
from ...tape.classify.by_method_and_url import may_ask_model
from ...tape.exchange import (
    Fingerprint,
    HttpRequest,
    HttpResponse,
    Phase,
    RequestClass,
    Seq,
)
from ...tape.policy.branch import ModelUse
from ...tape.policy.decide import Facts, Policy
from ...tape.policy.limits import (
    CountedUsage,
    Forms,
    Row,
    Spent,
    Used,
    find_spent,
)
from ...tape.records.events import EventKind
from .exchange_parts.answer import Answer
from .exchange_parts.arrival import Arrival
from .exchange_parts.phases import Recording

_MOST_WAYS = 64
"""Ways of a request in which its usage is looked for."""


@dataclass(slots=True)
class RequestUsage:
    """What one request has used, as far as it is known."""

    forms: Forms = frozenset()
    """All that it can be taken for, where repeats are counted."""
    may_ask_model: bool | None = None
    """Whether it can be taken for a model call; None where nobody has asked."""
    counted: CountedUsage | None = None
    """What it used, where limits have it read."""
    read_bytes: int = 0
    """Of the response's body, those that this was read from."""
    model: str = ""
    """The model that was asked for, where what the call can cost is reserved."""
    estimate: int | None = None
    """What it can cost, in billionths of a dollar; None where nobody has estimated it, or could."""
    unreadable: str = ""
    """Why that cannot be estimated, where its body cannot be read."""
    is_call: bool | None = None
    """Whether it counts among the calls; None where that was not asked."""


class Metered(Protocol):
    """A request that is counted: `PendingExchange`."""

    @property
    def seq(self) -> Seq:
        """Its place in the run."""

    @property
    def facts(self) -> Facts:
        """What is known of it by its head."""

    @property
    def request_class(self) -> RequestClass:
        """Its class."""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Its fingerprint, once it is known."""

    @property
    def usage(self) -> RequestUsage:
        """What it has used."""

    @property
    def progress(self) -> Recording:
        """How far it has come."""

    @property
    def arrival(self) -> Arrival:
        """How it arrived."""

    @property
    def answer(self) -> Answer:
        """What has come of its answer."""


class UsageMeter:
    """What one run has used."""

    def __init__(
        self,
        limits: Limits,
        classes: Classes,
        find_policy: Callable[[], Policy],
        note: Callable[..., None],
        known_use: Mapping[str, ModelUse] | None = None,
    ) -> None:
        """Begin with nothing used.

        find_policy: gives the policy of now.
        note: appends an event to the run's log.
        known_use: what calls of each model have used before, where the limit in dollars is a cap (`Branch.known_use`).
        """
        self.limits = limits
        self._known_use = None if known_use is None else dict(known_use)
        self._reserved: dict[Seq, int] = {}
        """What calls on their way can cost. The loop adds, and the writer's thread takes away."""
        self._classes = classes
        self._find_policy = find_policy
        self._note = note
        self.used = Used()
        self._row = Row()
        self._told: set[str] = set()
        self._loading: asyncio.Future[None] | None = None

    @property
    def reads_answers(self) -> bool:
        """Whether answers of models are read for what they state."""
        return self.limits.tokens is not None or self.limits.usd is not None

    @property
    def reserves(self) -> bool:
        """Whether what a model call can cost is reserved before it is sent."""
        return self._known_use is not None and self.limits.usd is not None

    @property
    def has_refused(self) -> bool:
        """Whether a limit was in the way of a request."""
        return bool(self._told)

    def estimate(self, pending: Metered, request: HttpRequest) -> None:
        """Find what a model call can cost. Any thread; before it is decided on."""
        from ...timeline.reading.estimate_cost import estimate_cost, find_unreadable

        if self._known_use is None:
            return
        pending.usage.unreadable = find_unreadable(request)
        found = estimate_cost(
            request,
            pending.arrival.started_ns,
            self._known_use,
            otherwise=_spelled_otherwise(request, pending.facts.ways),
        )
        if found is not None:
            pending.usage.model, pending.usage.estimate = found

    def asks_for_repeats(self, pending: Metered) -> bool:
        """Say whether a request's fingerprint is needed before it leaves; a poll that a rule allows is none."""
        if self.limits.repeats is None or pending.request_class is RequestClass.TELEMETRY:
            return False
        return self._find_policy().find_repeat(pending.facts) is None

    def begin(self) -> None:
        """Note the limits in the run's log, and get ready. Loop."""
        limits = self.limits
        usd = None if limits.usd is None else str(limits.usd)
        logged = {"calls": limits.calls, "tokens": limits.tokens, "usd": usd}
        self._note(EventKind.NOTED, limits={**logged, "repeats": limits.repeats})
        if self.reads_answers:
            self._loading = asyncio.get_running_loop().run_in_executor(None, self._load)

    def _load(self) -> None:
        from ...timeline.reading import (
            call_cost as usage_module,  # reads every dialect: not for a start without limits
        )

        if self.limits.usd is not None:
            usage_module.load_prices()

    def asks_model(self, pending: Metered) -> bool:
        """Say whether a request can be taken for a model call."""
        if RequestClass.INFERENCE in pending.facts.may_be:
            return True
        if not self.reads_answers:
            return False
        usage = pending.usage
        if usage.may_ask_model is None:
            usage.may_ask_model = may_ask_model(pending.facts.ways, self._classes)
        return usage.may_ask_model

    def note_forms(self, pending: Metered, forms: Forms) -> None:
        """Note all that a request can be taken for."""
        pending.usage.forms = forms

    def find_spent(self, pending: Metered) -> Spent | None:
        """Find the limit that stands in a request's way. Once a request."""
        times = 0
        if pending.fingerprint is not None and self.asks_for_repeats(pending):
            times = self._row.note(pending.facts, pending.usage.forms)
        kind = RequestClass.INFERENCE if self.asks_model(pending) else pending.request_class
        needed, reserved = pending.usage.estimate or 0, sum(list(self._reserved.values()))
        return find_spent(
            self.limits,
            self.used,
            kind,
            times,
            needed=needed,
            reserved=reserved,
            unreadable=pending.usage.unreadable,
        )

    def count(self, pending: Metered) -> None:
        """Count a request that is about to leave."""
        if pending.request_class is not RequestClass.TELEMETRY:
            self.used.calls += 1
            pending.usage.is_call = True
        if pending.usage.estimate:
            self._reserved[pending.seq] = pending.usage.estimate

    def uncount(self, pending: Metered) -> None:
        """Take back one that did not leave."""
        if pending.usage.is_call:
            self.used.calls -= 1
            pending.usage.is_call = False
        self._reserved.pop(pending.seq, None)

    def report(self, pending: Metered, spent: Spent) -> None:
        """Note in the run's log that a limit is exhausted, once for each."""
        if spent.limit in self._told:
            return
        self._told.add(spent.limit)
        used = self.used
        self._note(
            EventKind.LIMITED,
            seq=pending.seq,
            limit=spent.limit,
            reason=spent.text,
            calls=used.calls,
            tokens=used.tokens,
            usd=str(used.usd),
        )

    def heard(self, pending: Metered, answer: http.Response | None) -> None:
        """Note what a read was answered, where its repeats are counted. Loop; before the last byte is released."""
        if pending.request_class is not RequestClass.READ or pending.fingerprint is None:
            return
        if not self.asks_for_repeats(pending):
            return
        logged = blake3(b"%d " % (0 if answer is None else answer.status_code))
        if pending.answer.downloaded is not None:
            logged.update(pending.answer.downloaded.digest)
        else:
            logged.update(b"".join(pending.answer.pieces))
        self._row.heard(pending.facts, pending.usage.forms, logged.digest(16))

    def count_usage(
        self, pending: Metered, request: HttpRequest, response: HttpResponse | None
    ) -> None:
        """Count the usage that a model's answer states, in place of an earlier count for it. The writer's thread."""
        size = 0 if response is None else response.body_bytes
        usage = pending.usage
        if usage.counted is not None:
            if size == usage.read_bytes and (usage.counted.is_whole or usage.estimate is None):
                return  # the end of a stream whose last piece was read already
            self.used.add(usage.counted, -1)
        usage.read_bytes = size
        usage.counted = self._read(pending, request, response)
        if usage.counted is not None:
            self.used.add(usage.counted)
        self._reserved.pop(pending.seq, None)  # only now: at no time it is in neither

    def _read(
        self, pending: Metered, request: HttpRequest, response: HttpResponse | None
    ) -> CountedUsage | None:
        if response is None:
            fault = pending.progress.fault
            unreached = fault is not None and fault.phase in (Phase.CONNECT, Phase.TLS)
            unsent = unreached or not pending.progress.sent_on
            return (
                None if unsent else self._add_estimate(pending, CountedUsage(), request, response)
            )
        from ...timeline.reading.call_cost import read_counted_usage

        priced = self.limits.usd is not None
        counted = read_counted_usage(
            request,
            response,
            pending.arrival.started_ns,
            priced=priced,
            otherwise=_spelled_otherwise(request, pending.facts.ways),
        )
        if counted is None or not counted.is_whole:
            return counted and self._add_estimate(pending, counted, request, response)
        if self._known_use is not None and pending.usage.model:
            seen = self._known_use.get(pending.usage.model, ModelUse())
            self._known_use[pending.usage.model] = seen.widen(
                counted.nano_usd, counted.output_tokens
            )
        return counted

    def _add_estimate(
        self,
        pending: Metered,
        counted: CountedUsage,
        request: HttpRequest,
        response: HttpResponse | None,
    ) -> CountedUsage:
        """Add what a call can have cost whose answer does not state all of it."""
        usage = pending.usage
        if usage.estimate is None or self._known_use is None:
            return counted
        from ...timeline.reading.estimate_cost import count_pieces, estimate_cost

        most = usage.estimate
        if response is not None and (pieces := count_pieces(response.body)):
            longer = estimate_cost(
                request,
                pending.arrival.started_ns,
                self._known_use,
                otherwise=_spelled_otherwise(request, pending.facts.ways),
                least_output=pieces,
            )
            most = max(most, longer.nano_usd if longer is not None else 0)
        return replace(counted, estimated=max(0, most - (counted.nano_usd or 0)))


def _spelled_otherwise(request: HttpRequest, ways: Ways) -> Iterator[HttpRequest]:
    """Give a request in each way that it can be taken, for whoever knows models by method, host and path."""
    # By names alone, whatever the case.
    paths = dict.fromkeys((*ways.paths, *(path.lower() for path in ways.paths)))
    paths |= dict.fromkeys(path.rstrip("/") for path in list(paths))
    query = request.target.partition("?")[2]
    every = product(ways.methods, dict.fromkeys(place.host for place in ways.places), paths)
    for method, host, path in islice(every, _MOST_WAYS):
        yield replace(
            request, method=method, host=host, target=f"{path}?{query}" if query else path
        )
