"""Whatever one place of a recorded request is changed to, nothing stale is served, and that place is named.

10,000 mutations with PLAYHEAD_FULL, 300 without (always the same), and a fifth of that with a search of the
whole tape.
"""

import os
from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from playhead.config import Classes, Config, Mode
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint, raw_key
from playhead.tape.classify.by_method_and_url import classify
from playhead.tape.diff.nearest import nearest
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import Fingerprint, Request, RequestClass, Seq
from playhead.tape.matching.cursor import Cursor, Unknown
from playhead.tape.policy.decide import Action, Facts, Policy, decide
from playhead.tests.support.mutations import mutations, realistic_requests

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
COUNT = 10_000 if FULL else 300
SHARE = 0.99
"""Least share of mutations whose place is the first that is named."""

RULES = compile_rules()
TAPE = realistic_requests()


def key(request: Request, kind: RequestClass) -> Fingerprint:
    return fingerprint(canonical(request, kind, RULES))


def class_of(request: Request) -> RequestClass:
    place = request.method, request.scheme, request.host, request.port, request.target
    return classify(*place, Classes()).of


USES = {key(request, class_of(request)): Seq(seq) for seq, request in enumerate(TAPE, start=1)}
FORMS = [(one, canonical(one, class_of(one), RULES)) for one in TAPE]
OTHERS = {(one.url, one.body): [form for other, form in FORMS if other is not one] for one in TAPE}
RAWS = {raw_key(request, class_of(request)) for request in TAPE}


def next_use(found: Fingerprint, after: int) -> Seq | None:
    seq = USES.get(found)
    return seq if seq is not None and seq > after else None


def test_each_recorded_request_is_served_as_it_is() -> None:
    """Else the refusals below would prove nothing."""
    assert len(USES) == len({(request.url, request.body) for request in TAPE})
    for request in TAPE:
        found = Cursor(next_use).find(key(request, class_of(request)), class_of(request))
        assert not isinstance(found, Unknown)


def test_a_change_at_one_place_is_never_answered_and_is_named() -> None:
    """Through fingerprint, raw key, cursor and policy; then the first difference is counted."""
    hold(COUNT, lambda recorded, _: recorded)


def test_a_change_at_one_place_is_named_by_what_is_nearest_on_the_whole_tape() -> None:
    """Nobody says which recorded request was meant: it is searched for, as on a miss."""

    def search(_: Request, asked: Request) -> Request:
        found = nearest(asked, zip(map(Seq, range(1, len(TAPE) + 1)), TAPE, strict=True))
        assert found is not None
        return found[1]

    hold(COUNT // 5, search)


def hold(count: int, find: Callable[[Request, Request], Request]) -> None:
    """Draw mutations: none may be answered, and nearly all have to be named.

    find: gives the recorded request that a changed one is compared with.
    """
    named: Counter[bool] = Counter()
    missed: list[str] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=not FULL,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def mutate(data: st.DataObject) -> None:
        recorded = data.draw(st.sampled_from(TAPE))
        mutation = data.draw(mutations(recorded, RULES))
        asked, kind = mutation.request, class_of(mutation.request)
        # Two samples are one call, streamed and not: what made one of the other is no change of the tape.
        assume(canonical(asked, kind, RULES) not in OTHERS[recorded.url, recorded.body])
        note(f"{mutation.kind} at {mutation.expected}")
        assert raw_key(asked, kind) not in RAWS
        found = Cursor(next_use).find(key(asked, kind), kind)
        assert isinstance(found, Unknown)
        facts = Facts(asked.method, asked.scheme, asked.host, asked.port, asked.target, kind)
        decision = decide(facts, Mode.PLAYBACK, Policy.of(Config()), found)
        assert decision.action is Action.REFUSE
        told = differences(find(recorded, asked), asked, RULES, class_of(recorded))
        right = bool(told) and mutation.named(told[0].place)
        named[right] += 1
        if not right:
            first = told[0].place if told else "nothing"
            missed.append(f"{mutation.kind}: expected {mutation.expected}, named {first}")

    mutate()
    share = named[True] / named.total()
    print(f"\n{named.total()} mutations, 0 served, {share:.2%} named right")
    print("\n".join(f"{count:5d} {what}" for what, count in Counter(missed).most_common(40)))
    assert named.total() >= count
    assert share >= SHARE, Counter(missed).most_common(20)
