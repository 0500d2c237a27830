"""Header fields through the real proxy: what is served, what is refused with its cause, which tenant gets which answer."""

from pathlib import Path

import pytest

from playhead.tests.support.story import Call, recorded

BALANCE = "GET /v1/balance"
KEY_A, KEY_B = "Bearer sk_live_aaaaaaaaaaaaaaaaaaaa1", "Bearer sk_live_bbbbbbbbbbbbbbbbbbbb2"
TEST_KEY, OTHER_KEY = "Bearer sk_test_cccccccccccccccccccc3", "Bearer sk_test_dddddddddddddddddddd4"

DECISIVE: list[tuple[str, str | None, str | None]] = [
    ("Stripe-Account", "acct_1", "acct_2"),
    ("Stripe-Account", "acct_1", None),
    ("Stripe-Account", None, "acct_1"),
    ("x-ms-range", "bytes=0-9", "bytes=10-19"),
    ("x-amz-copy-source", "/bucket/a", "/bucket/b"),
    ("If-None-Match", '"a"', None),
    ("X-Nobody-Knows", "1", "2"),
    ("session-id", "one", "two"),
    ("baggage", "user.id=alice,sentry-trace_id=1", "user.id=bob,sentry-trace_id=1"),
    ("Cookie", "session=a1", "tenant=a1"),
    ("Authorization", KEY_A, None),
    ("Authorization", KEY_A, "Basic c29tZWJvZHk6c2VjcmV0"),
]


@pytest.mark.parametrize(("name", "then", "now"), DECISIVE)
async def test_another_field_is_another_request(
    name: str, then: str | None, now: str | None, store_dir: Path
) -> None:
    """It is refused, and the refusal names the field."""
    tape = [Call(BALANCE, headers={name: then} if then is not None else {})]
    async with recorded(store_dir, tape) as story:
        (said,) = await story.play([Call(BALANCE, headers={name: now} if now is not None else {})])
        receipt = await story.end()
    assert said.status == 424
    assert [one["place"] for one in said.divergence["differences"]] == [f"header {name.lower()}"]
    assert receipt.faithful is False


SERVED: list[tuple[str, dict[str, str], dict[str, str], dict[str, int], str]] = [
    ("noise", {"User-Agent": "a/1"}, {"User-Agent": "a/2"}, {}, "exact"),
    ("traces", {"traceparent": "00-1-1-00"}, {}, {}, "exact"),
    ("family", {"X-Stainless-Retry-Count": "0"}, {"X-Stainless-Retry-Count": "1"}, {}, "exact"),
    (
        "codings",
        {"Accept-Encoding": "gzip"},
        {"Accept-Encoding": "gzip, br"},
        {"accept-encoding": 1},
        "canonical",
    ),
    ("credential", {"Authorization": KEY_A}, {"Authorization": TEST_KEY}, {}, "canonical"),
    (
        "run ids",
        {"originator": "codex_exec", "session-id": "0199-aaaa-run"},
        {"originator": "codex_exec", "session-id": "0199-bbbb-run"},
        {"session-id": 1},
        "canonical",
    ),
    (
        "idempotency key",
        {"Idempotency-Key": "key-a"},
        {"Idempotency-Key": "key-b"},
        {"idempotency-key": 1},
        "canonical",
    ),
    (
        "ids in JSON",
        {
            "x-codex-turn-metadata": '{"turn_id": "a", "root_turn_id": "a", "turn_started_at_unix_ms": 1795830112618, "model": "m"}'
        },
        {
            "x-codex-turn-metadata": '{"turn_id": "b", "root_turn_id": "b", "turn_started_at_unix_ms": 1795830143626, "model": "m"}'
        },
        {"x-codex-turn-metadata": 1},
        "canonical",
    ),
    ("a condition that is new", {}, {"If-None-Match": '"a"'}, {"if-none-match": 1}, "canonical"),
    ("case", {"X-Own": "1"}, {"x-own": "1"}, {}, "exact"),
    (
        "signature",
        {
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIAAAAAAAAAAAAAAAA1/20261122/eu-west-1/s3/aws4_request,"
            " SignedHeaders=host;x-amz-date, Signature=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
            "X-Amz-Date": "20261122T101010Z",
        },
        {
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIAAAAAAAAAAAAAAAA1/20261123/eu-west-1/s3/aws4_request,"
            " SignedHeaders=host;x-amz-date, Signature=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2",
            "X-Amz-Date": "20261123T101010Z",
        },
        {},
        "canonical",
    ),
]


@pytest.mark.parametrize(
    ("then", "now", "differ", "match"), [row[1:] for row in SERVED], ids=[row[0] for row in SERVED]
)
async def test_what_means_nothing_is_served(
    then: dict[str, str], now: dict[str, str], differ: dict[str, int], match: str, store_dir: Path
) -> None:
    """And what is reported stands in the receipt; exact is said of the same bytes alone."""
    async with recorded(store_dir, [Call(BALANCE, headers=then)]) as story:
        (said,) = await story.play([Call(BALANCE, headers=now)])
        receipt = await story.end()
    assert said.status == 200
    assert receipt.headers_differ == differ
    assert receipt.matched == {match: 1}
    assert receipt.faithful is True


def ask(key: str, answer: str) -> Call:
    """The same request with a key."""
    return Call(BALANCE, answer=answer, headers={"Authorization": key})


REGION = "AWS4-HMAC-SHA256 Credential=AKIAAAAAAAAAAAAAAAA1/20261122/%s/s3/aws4_request, SignedHeaders=host, Signature=0a"


async def test_another_region_is_another_request(store_dir: Path) -> None:
    """A signed `authorization` counts by its parts."""
    tape = [Call(BALANCE, headers={"Authorization": REGION % "eu-west-1"})]
    async with recorded(store_dir, tape) as story:
        (said,) = await story.play([Call(BALANCE, headers={"Authorization": REGION % "us-east-1"})])
    assert said.status == 424
    assert [one["place"] for one in said.divergence["differences"]] == ["header authorization"]


async def test_two_tenants_get_their_own_answers_in_any_order(store_dir: Path) -> None:
    """The one whose other fields are equal wins, whichever asks first."""
    tape = [ask(KEY_A, "10"), ask(KEY_B, "20")]
    # What an origin answers to one request twice comes in its order.
    async with recorded(store_dir, tape) as story:
        said = await story.play([ask(KEY_B, ""), ask(KEY_A, "")])
        receipt = await story.end()
    assert [one.body for one in said] == [b"20", b"10"]
    assert receipt.matched == {"exact": 2}
    assert receipt.faithful is True


async def test_two_tenants_under_other_keys_are_told_apart_by_what_they_asked_before(
    store_dir: Path,
) -> None:
    """One recorded key stands for one key of now, for the whole run."""
    tape = [
        Call("GET /a", headers={"Authorization": KEY_A}),
        Call("GET /b", headers={"Authorization": KEY_B}),
        ask(KEY_A, "10"),
        ask(KEY_B, "20"),
    ]
    async with recorded(store_dir, tape) as story:
        await story.play([Call("GET /b", headers={"Authorization": OTHER_KEY})])
        await story.play([Call("GET /a", headers={"Authorization": TEST_KEY})])
        said = await story.play([ask(OTHER_KEY, ""), ask(TEST_KEY, "")])
        receipt = await story.end()
    assert [one.body for one in said] == [b"20", b"10"]
    assert receipt.faithful is True


async def test_one_dummy_key_for_two_tenants_is_red_where_the_answer_depends_on_it(
    store_dir: Path,
) -> None:
    """Nobody can say whose balance was asked for."""
    async with recorded(store_dir, [ask(KEY_A, "10"), ask(KEY_B, "20")]) as story:
        await story.play([ask(TEST_KEY, ""), ask(TEST_KEY, "")])
        receipt = await story.end()
    assert receipt.faithful is False
    (row,) = receipt.divergences
    assert (row["kind"], row["differences"][0]["place"]) == ("changed", "header authorization")


async def test_one_dummy_key_for_two_services_is_reported(store_dir: Path) -> None:
    """No answer depends on which it was."""
    tape = [
        Call("GET /a", headers={"Authorization": KEY_A}),
        Call("GET /b", headers={"Authorization": KEY_B}),
    ]
    async with recorded(store_dir, tape) as story:
        await story.play(
            [Call(path, headers={"Authorization": TEST_KEY}) for path in ("GET /a", "GET /b")]
        )
        receipt = await story.end()
    assert receipt.credentials_merged == {"authorization": 1}
    assert receipt.faithful is True


async def test_two_keys_for_one_recorded_are_red(store_dir: Path) -> None:
    """A refund went to another account."""
    tape = [
        Call("GET /a", headers={"Authorization": KEY_A}),
        Call("POST /v1/refunds", {"amount": 5}, headers={"Authorization": KEY_A}),
    ]
    async with recorded(store_dir, tape) as story:
        await story.play([Call("GET /a", headers={"Authorization": TEST_KEY})])
        await story.play(
            [Call("POST /v1/refunds", {"amount": 5}, headers={"Authorization": OTHER_KEY})]
        )
        receipt = await story.end()
    assert [row["kind"] for row in receipt.divergences] == ["changed"]
    assert receipt.faithful is False


async def test_an_id_of_the_run_in_the_body_is_the_one_in_the_head(store_dir: Path) -> None:
    """Claude Code says its session twice."""

    def call(session: str, said: str = "hi") -> Call:
        body = {"metadata": {"user_id": f"user_session_{session}"}, "content": said}
        return Call("POST /v1/things", body, headers={"x-claude-code-session-id": session})

    first, second = "a1b2c3d4-0000-4000-8000-000000000001", "a1b2c3d4-0000-4000-8000-000000000002"
    async with recorded(store_dir, [call(first)]) as story:
        (said,) = await story.play([call(second)])
        receipt = await story.end()
        await story.play([call(second, "bye")])
        other = await story.end()
    assert said.status == 200
    assert receipt.headers_differ == {"x-claude-code-session-id": 1}
    assert receipt.faithful is True
    assert [one["place"] for one in other.divergences[0]["differences"]] == ["body $.content"]
