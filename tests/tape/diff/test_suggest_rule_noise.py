"""What advice takes for noise, and what for content."""

import pytest

from playhead.tape.diff.divergence_types import Difference
from playhead.tape.diff.suggest_rule import has_clock, is_content, is_volatile
from playhead.tape.exchange import RequestClass

EFFECT, INFERENCE, READ = RequestClass.EFFECT, RequestClass.INFERENCE, RequestClass.READ
THEN_S, NOW_S = 1_760_000_000.0, 1_760_086_400.0
UUIDS = ('"6f1c0b5e-8d2b-4b7e-9b43-0c1f5d8a7e21"', '"0b9d2c44-53a1-4f0e-8a9c-f2b7d6e1c3a5"')


@pytest.mark.parametrize(
    ("recorded", "asked", "volatile", "clock"),
    [
        (*UUIDS, True, True),
        ('"2025-10-09T08:53:20Z"', '"2025-10-10T08:53:20Z"', True, True),
        ("1760000000", "1760086400", True, True),
        ('"may I refund the mug"', '"may I refund the car"', False, False),
        ("4900", "9400", False, False),
        (UUIDS[0], "(absent)", False, False),
        (UUIDS[0], '"2025-10-10T08:53:20Z"', False, False),
    ],
)
def test_what_is_made_anew_is_volatile(
    recorded: str, asked: str, volatile: bool, clock: bool
) -> None:
    """As `learn` has it; everything else is content."""
    found = [Difference("body $.request_id" if recorded in UUIDS else "body $.at", recorded, asked)]
    assert is_volatile(found, THEN_S, NOW_S) is volatile
    assert has_clock(found, THEN_S, NOW_S) is clock
    content = Difference("body $.y", '"a"', '"b"')
    assert not is_volatile([*found, content], THEN_S, NOW_S)


def test_an_id_that_names_a_party_is_content() -> None:
    """Who is paid is what a request is about, however drawn the id looks."""
    found = [Difference("body $.to", *UUIDS)]
    assert not is_volatile(found, THEN_S, NOW_S)


@pytest.mark.parametrize(
    ("place", "recorded", "asked", "volatile"),
    [
        # What a request is about is not proved by how it looks.
        ("body $.amount", '"1000000000000000000"', '"9000000000000000000"', False),
        ("body $.x", *UUIDS, False),
        ("body $.metadata.user", *UUIDS, False),
        ("query order_id", *UUIDS, False),
        ("header x-order-id", *UUIDS, False),
        ("body $.due_at", "1760000000", "1760086400", False),
        ("body $.messages[0].content", *UUIDS, False),
        ("body $.request_id", *UUIDS, True),
        ("body $.at", "1760000000", "1760086400", True),
        ("body $.at", "1760000000", "1760089999", False),
        # Queries and forms are judged as their programs meant them.
        ("query timestamp", "2025-10-09T08%3A53%3A20Z", "2025-10-10T08%3A53%3A20Z", True),
        (
            "form sent_at",
            "2025-10-09T08%3A53%3A20%2B00%3A00",
            "2025-10-10T08%3A53%3A20%2B00%3A00",
            True,
        ),
        ("query timestamp", "2025-10-09+08%3A53%3A20", "2025-10-10+08%3A53%3A20", True),
        (
            "query at",
            "Thu%2C+09+Oct+2025+08%3A53%3A20+GMT",
            "Fri%2C+10+Oct+2025+08%3A53%3A20+GMT",
            True,
        ),
        ("query at", "2025-10-09T08%3A53%3A20Z", "2025-10-12T08%3A53%3A20Z", False),
        (
            "form nonce",
            "3q2%2B7wq%2FK1Zt9Yx0QmVbBA%3D%3D",
            "mP4%2F8sT%2Br2Xc6Lw1JhNdUg%3D%3D",
            True,
        ),
        ("query nonce", "3q2+7wq/K1Zt9Yx0QmVbBA==", "mP4/8sT+r2Xc6Lw1JhNdUg==", True),
        (
            "query order",
            "3q2%2B7wq%2FK1Zt9Yx0QmVbBA%3D%3D",
            "mP4%2F8sT%2Br2Xc6Lw1JhNdUg%3D%3D",
            False,
        ),
        ("header x-req-nonce", "3q2+7wq/K1Zt9Yx0QmVbBA==", "mP4/8sT+r2Xc6Lw1JhNdUg==", True),
    ],
)
def test_no_rule_is_shown_for_what_may_be_content(
    place: str, recorded: str, asked: str, volatile: bool
) -> None:
    """The place has to name a request, or a time, which then has to be that of its recording: in all classes of requests."""
    found = [Difference(place, recorded, asked)]
    assert is_volatile(found, THEN_S, NOW_S) is volatile


@pytest.mark.parametrize(
    ("place", "kind", "content"),
    [
        ("body $.messages[0].content", INFERENCE, True),
        ("body $.system", INFERENCE, True),
        ("body $.tools[2].name", INFERENCE, True),
        ("body $.input[0]", INFERENCE, True),
        ("body $.contents[0].parts", INFERENCE, True),
        ("body $.item.content[0].text", INFERENCE, True),
        ("body $.session.instructions", INFERENCE, True),
        ("body $.session.tools[0].name", INFERENCE, True),
        ("body $.client_content.turns[0].parts[0].text", INFERENCE, True),
        ("body $.query", INFERENCE, True),
        ("body $.session.id", INFERENCE, False),
        ("body byte 12", INFERENCE, True),
        ("body $.metadata.user_id", INFERENCE, False),
        ("body $.messages_id", INFERENCE, False),
        ("header x-request-id", INFERENCE, False),
        ("query at", EFFECT, True),
        ("body $.metadata.user_id", EFFECT, True),
        ("body $.messages[0]", READ, False),
    ],
)
def test_content_is_what_a_request_is_about(place: str, kind: RequestClass, content: bool) -> None:
    """Any place of an effect, and the question of a model call."""
    assert is_content(Difference(place, "1", "2"), kind) is content
