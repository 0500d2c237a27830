"""What sort of thing a value is that differed."""

import pytest

from playhead.tape.diff.classify_differing_values import Seen, ValueClass, classify_values

NOW = 1_760_000_000.0
UUIDS = ('"0f8fad5b-d9cb-469f-a165-70867728950e"', '"7c9e6679-7425-40de-944b-e07fc1f90ae7"')

ROWS = [
    # ids
    (*UUIDS, "id", "uuid"),
    ('"4bf92f3577b34da6a3ce929d0e0e4736"', '"00f067aa0ba902b7a3ce929d0e0e4736"', "id", "hex"),
    ('"9f86d081"', '"3a7bd3e2"', "id", "hex"),
    ('"call_9s6XKzkNRiz8i3"', '"call_NffrFeUfNV2Hib"', "id", "prefix_alnum"),
    (f'"job_{UUIDS[0][1:-1]}"', f'"job_{UUIDS[1][1:-1]}"', "id", "prefix_uuid"),
    (f'"a.b-{UUIDS[0][1:-1]}"', f'"a.b-{UUIDS[1][1:-1]}"', "id", "prefix_uuid"),
    (f'"job_{UUIDS[0][1:-1]}"', f'"run_{UUIDS[1][1:-1]}"', "content", ""),
    ('"req-1a2b3c4d5e"', '"req-9z8y7x6w5v"', "id", "prefix_alnum"),
    # times
    ('"2026-11-22T06:08:36Z"', '"2026-11-23T01:00:00.123+01:00"', "time", "ISO 8601"),
    ('"20261122T060836Z"', '"20261122T060837Z"', "time", "ISO 8601"),
    ("1760000123", "1760000999", "time", "epoch s"),
    ("1760000123.25", "1760000999.5", "time", "epoch s"),
    ('"1760000123000"', '"1760000999000"', "time", "epoch ms"),
    ("1760000123000000000", "1760000999000000000", "time", "epoch ns"),
    ('"Sun, 22 Nov 2026 06:08:36 GMT"', '"Mon, 23 Nov 2026 06:08:36 GMT"', "time", "HTTP date"),
    # random
    ('"Zx81kQ0pLm93TtYw7RbN"', '"a9Kd02LmPq81XcVb5NzT"', "random", ""),
    # base64 of 16 bytes, also for URLs
    ('"3q2+7wq/K1Zt9Yx0QmVbBA=="', '"mP4/8sT+r2Xc6Lw1JhNdUg=="', "random", ""),
    ('"3q2-7wq_K1Zt9Yx0QmVbBA"', '"mP4_8sT-r2Xc6Lw1JhNdUg"', "random", ""),
    ("0.8444218515250481", "0.7579544029403025", "random", ""),
    ("13835058055282163712", "9223372036854775808", "random", ""),
    # content
    ('"internationalizations8"', '"internationalisations7"', "content", ""),
    ('"gpt-4o-mini-2024-07-1A"', '"gpt-4o-mini-2024-08-1A"', "content", ""),
    ('"refund ch_1007"', '"refund ch_1008"', "content", ""),
    ("4900", "5000", "content", ""),
    ("0.2", "0.7", "content", ""),
    ("1500000000", "1500000001", "content", ""),  # years from when it was recorded: no time
    ('"gpt-5-mini-2025-08-07"', '"gpt-4o-2024-11-20"', "content", ""),
    ('"claude-3-5-sonnet-20241022"', '"claude-3-7-sonnet-20250219"', "content", ""),
    ('"us.anthropic.claude-3-haiku-20240307-v1:0"', '"us.anthropic.claude-3-opus-20240229-v1:0"', "content", ""),
    ('"facade12"', '"an ordinary word"', "content", ""),
    ('"internationalization"', '"internationalisation"', "content", ""),
    ("true", "false", "content", ""),
    ("(absent)", UUIDS[0], "content", ""),
    (UUIDS[0], '"2026-11-22T06:08:36Z"', "content", ""),
    ('{"id": 1}', '{"id": 2}', "content", ""),
    ('"' + "4bf92f3577b34da6" * 20 + '"', '"' + "00f067aa0ba902b7" * 20 + '"', "content", ""),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "kind", "form"), ROWS)
def test_a_value_is_what_it_looks_like(one: str, other: str, kind: str, form: str) -> None:
    """A table; when in doubt it is content."""
    # A value as long as what is shown of one may have been cut.
    one, other = one[:200], other[:200]
    assert classify_values([Seen(one, other, NOW, NOW + 86400)]) == (ValueClass(kind), form)


@pytest.mark.parametrize(
    ("ones", "others", "kind"),
    [
        ((3, 4, 5), (43, 44, 45), "counter"),
        ((0, 1), (1, 2), "counter"),
        ((3,), (43,), "content"),
        ((5, 4, 3), (45, 44, 43), "content"),
        ((3, 4, 7), (43, 44, 47), "content"),
        ((2, 4, 6), (5, 10, 15), "content"),
        ((1, 21, 41), (1, 51, 101), "content"),
        ((3, 4), (4300, 4301), "content"),
    ],
)
def test_whole_numbers_that_count_by_one_from_a_small_start_are_a_counter(
    ones: tuple[int, ...], others: tuple[int, ...], kind: str
) -> None:
    """In both recordings; one pair alone could be anything, and quantities and offsets grow in steps."""
    pairs = [Seen(str(one), str(other), NOW, NOW) for one, other in zip(ones, others, strict=True)]
    assert classify_values(pairs) == (ValueClass(kind), "")


def test_one_content_among_ids_makes_the_place_content() -> None:
    """Hiding it would hide a change."""
    ids = Seen(*UUIDS, NOW, NOW)
    assert classify_values([ids, ids])[0] is ValueClass.ID
    assert classify_values([ids, Seen('"a"', '"b"', NOW, NOW)])[0] is ValueClass.CONTENT


def test_an_id_that_looks_drawn_less_is_one_among_its_like() -> None:
    """Of the same prefix and length, or hexadecimal of the same length; else it is content."""
    ids = Seen('"req_9f8e7d6c5b"', '"req_1a2b3c4d5e"', NOW, NOW)
    plain = Seen('"req_1234567890"', '"req_0987654321"', NOW, NOW)
    assert classify_values([plain]) == (ValueClass.CONTENT, "")
    assert classify_values([ids, plain]) == (ValueClass.ID, "prefix_alnum")
    assert classify_values([ids, plain, plain])[0] is ValueClass.CONTENT
    assert classify_values([ids, plain._replace(one='"req_shorter1"')])[0] is ValueClass.CONTENT
    hexes = [Seen('"9f86d081"', '"3a7bd3e2"', NOW, NOW), Seen('"12345678"', '"3a7bd3e2"', NOW, NOW)]
    assert classify_values(hexes) == (ValueClass.ID, "hex")
