"""Which recorded exchange answers a request: found by what counts, chosen by what does not, without a proxy."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode, Secrets
from playhead.store import Store, StoreKey
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
