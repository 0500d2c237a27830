"""Which recorded exchange answers a request: found by what counts, chosen by what does not, without a proxy."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mitmproxy import connection

from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode, Secrets
from playhead.store import Store, StoreKey, StoreUnwritable
from playhead.tape.exchange import Headers, RequestClass, Seq
from playhead.tape.matching.cursor import Hit, Unknown
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request, make_response
from playhead.tests.support.recordings import Asked, record_run

KEY_A, KEY_B = (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")


@pytest.fixture
def store(store_dir: Path) -> Iterator[Store]:
    with Store.open(store_dir) as opened:
        yield opened


def _recorded(*headers: tuple[bytes, bytes], status: int = 200) -> Asked:
    return replace(make_request(), headers=headers), make_response(b"x", status)


def _play(store: Store, *recorded: Asked) -> OpenRun:
    tape = record_run(store, "tape", recorded, kind=RequestClass.READ)
    return OpenRun(Mode.PLAYBACK, Config(), Redactor(b"key"), store, None, tape)


def _find(open_run: OpenRun, headers: Headers) -> Hit | object:
    playback, request = open_run.playback, replace(make_request(), headers=headers)
    assert playback is not None
    own = open_run.identifier.fingerprint(request, RequestClass.READ)
    found, hit = playback.find_recorded(request, RequestClass.READ, own, repeat=False)
    if isinstance(hit, Hit):
        playback.cursor.take(found, hit)
    return hit


@pytest.mark.parametrize(
    ("headers", "seq"),
    [
        (((b"x-own", b"1"),), 1),
        (((b"x-own", b"1"), (b"if-none-match", b'"a"')), 1),
        (((b"x-own", b"2"), (b"if-modified-since", b"then")), None),  # was answered 404
        (((b"x-own", b"3"),), None),
    ],
)
async def test_a_condition_that_is_new_is_answered_in_full(
    headers: Headers, seq: int | None, store: Store
) -> None:
    """Where the recorded answer was 200: any client understands it."""
    open_run = _play(store, _recorded((b"x-own", b"1")), _recorded((b"x-own", b"2"), status=404))
    assert _find(open_run, headers) == (Unknown() if seq is None else Hit(Seq(seq)))


async def test_among_equal_requests_the_one_with_the_same_credential_is_chosen(
    store: Store,
) -> None:
    """Whichever is asked for first; then what is left."""
    open_run = _play(store, _recorded(KEY_A), _recorded(KEY_B))
    assert _find(open_run, (KEY_B,)) == Hit(Seq(2))
    assert _find(open_run, (KEY_A,)) == Hit(Seq(1))


async def test_what_is_the_same_in_all_comes_in_its_order(store: Store) -> None:
    """Also after one that was recorded later was served first."""
    keys = (KEY_A, KEY_A, KEY_B, KEY_A)
    open_run = _play(store, *map(_recorded, keys))
    found = [_find(open_run, (key,)) for key in (KEY_B, KEY_A, KEY_A, KEY_A)]
    assert found == [Hit(Seq(n)) for n in (3, 1, 2, 4)]


@pytest.mark.parametrize("secrets", Secrets)
@pytest.mark.parametrize("key", [None, StoreKey(b"k" * 32, "here")])
@pytest.mark.parametrize("asked", [True, False])
def test_originals_are_kept_where_all_agree(
    store_dir: Path, secrets: Secrets, key: StoreKey | None, asked: bool
) -> None:
    """The configuration of the run says so, the store is encrypted, and it was opened for that."""
    with Store.open(store_dir, key=key, originals=asked) as store:
        config = Config(secrets=secrets)
        open_run = OpenRun(Mode.RECORD, config, Redactor(b"key"), store, None, None)
        expected = secrets is Secrets.ENCRYPTED and asked and key is not None
        assert open_run.keeps_originals is expected


class OnItsWay:
    """A request on its way, as far as a run looks at it."""

    decision = None

    def __init__(self, origin: tuple[str, int] = ("api.test", 443)) -> None:
        self.origin = origin


def _record(store: Store) -> OpenRun:
    return OpenRun(Mode.RECORD, Config(), Redactor(b"key"), store, None)


async def test_a_run_is_settled_once_nothing_is_on_its_way(store: Store) -> None:
    """It counts what it has had, and can be told to wait no longer."""
    open_run, first, second = _record(store), cast("Any", OnItsWay()), cast("Any", OnItsWay())
    assert await open_run.settled(1)
    open_run.begin(first)
    open_run.begin(second)
    assert not await open_run.settled(0)
    open_run.finish(first)
    assert open_run.on_the_way.pending_exchanges == {second}
    open_run.hurry()
    assert not await open_run.settled(1)
    open_run.finish(second)
    assert await open_run.settled(1)
    assert (open_run.on_the_way.requests, open_run.next_seq(), open_run.on_the_way.last_seq) == (
        2,
        1,
        1,
    )


def test_a_request_that_is_done_may_connect_no_more(store: Store) -> None:
    """Its permit goes with it, and those of others stay."""
    open_run, first, second = _record(store), cast("Any", OnItsWay()), cast("Any", OnItsWay())
    for one in (first, second):
        open_run.begin(one)
        open_run.connections.permits[one] = ("client", "api.test", 443)
    open_run.finish(first)
    assert list(open_run.connections.permits) == [second]


@pytest.mark.parametrize(
    ("origin", "at_s", "since", "asked"),
    [
        (("api.test", 443), 5.0, 9.0, True),  # on its way
        (("other.test", 443), 5.0, 4.0, True),
        (("other.test", 443), 5.0, 6.0, False),
        (("other.test", 444), None, 0.0, False),
    ],
)
def test_what_was_asked_since(
    store: Store, origin: tuple[str, int], at_s: float | None, since: float, asked: bool
) -> None:
    """What is on its way counts whenever it began; what is done, from when it was."""
    open_run = _record(store)
    open_run.begin(cast("Any", OnItsWay()))
    if at_s is not None:
        open_run.connections.asked_at[origin] = at_s
    assert open_run.was_asked(origin, since=since) is asked


def test_tunnels_are_counted_by_origin(store: Store) -> None:
    """Each knows how many there were before it, and after which request it was asked for."""
    open_run = _record(store)
    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
    asked = [("api.test", 443, 0), ("api.test", 443, 3), ("api.test", 444, 3)]
    made = [
        open_run.connections.next_tunnel(client, host, port, Seq(after))
        for host, port, after in asked
    ]
    assert [(one.number, one.after) for one in made] == [(1, 0), (2, 3), (1, 3)]
    assert open_run.connections.tunnels == {client.id: made[-1]}


@pytest.mark.parametrize(
    ("keys", "named"), [([], False), ([("mine",)], True), ([("mine", 7, 1.0)], False)]
)
def test_who_may_join_a_run(store: Store, keys: list[tuple[Any, ...]], named: bool) -> None:
    """Any group joins a run that was asked for by its name alone."""
    open_run = _record(store)
    open_run.members.keys.update(keys)
    assert open_run.members.named is named


def test_a_run_that_is_not_begun_has_no_number(store: Store) -> None:
    """Who writes to it is told so, as where the disk is full."""
    open_run = _record(store)
    with pytest.raises(StoreUnwritable, match="could not be begun"):
        _ = open_run.number
    assert (open_run.lifetime.ending, open_run.lifetime.stopped, open_run.lifetime.problem) == (
        False,
        None,
        "",
    )
    assert open_run.tape is None
