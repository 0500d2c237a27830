"""Profiles of clients: what is read, and what is a fault at load."""

from itertools import pairwise
from pathlib import Path

import pytest

from playhead.config import ConfigError, loads
from playhead.config.profiles.client_profile import Profile, parse_profile, parse_shipped_profile
from playhead.config.profiles.shipped_profiles import find_profiles, shipped_profiles
from playhead.tape.headers.shipped_lists import DECISIVE_NAMES

EVIDENCE = "reason: new in each run, client_version: 1.0, recordings: [a, b]"
HEAD = "profile: some-cli\nversion: 3\nclient: Some CLI\nrecognise: {user_agent: [Some-CLI]}\n"
PLACE = f"{{match: POST *://*/v1/chat, json: $.id, regex: '^([0-9a-f]{{8}})$', {EVIDENCE}}}"
SOUND = f"{HEAD}places:\n  - {PLACE}\n"


def read(text: str) -> Profile:
    return parse_profile(text, "some-cli.yaml")


def test_a_profile_is_read() -> None:
    """Products lose their case; a place keeps its evidence."""
    profile = read(f"{SOUND}unconditional:\n  - {{match: GET *://*/v1/me, {EVIDENCE}}}\n")
    assert (str(profile), profile.client, profile.products) == (
        "some-cli 3",
        "Some CLI",
        ("some-cli",),
    )
    (place,) = profile.places
    assert (place.json, place.regex) == ("$.id", "^([0-9a-f]{8})$")
    assert place.evidence.recordings == ("a", "b")
    assert not place.linked
    assert read(SOUND.replace("json:", "linked: true, json:")).places[0].linked
    field = SOUND.replace("json: $.id", "linked: true, header: X-Id")
    assert (read(field).places[0].linked, read(field).places[0].header) == (True, "x-id")
    assert profile.unconditional[0].match.text == "GET *://*/v1/me"


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def place(**keys: str) -> str:
    """A profile with one place, in which some keys are others."""
    found = {
        "match": "POST *://*/v1/chat",
        "json": "$.id",
        "regex": "^([0-9a-f]{8})$",
        "reason": "new",
        "client_version": "1.0",
        "recordings": "[a, b]",
    } | keys
    rows = [
        f"    {key}: {value if value.startswith('[') else quoted(value)}\n"
        for key, value in found.items()
        if value
    ]
    return f"{HEAD}places:\n  -\n{''.join(rows)}"


FAULTS = [
    # what is not there
    ("", ":1:1: is empty"),
    ("{}", ": profile: missing"),
    (HEAD, "says nothing; expected places or unconditional"),
    (SOUND.replace("recognise: {user_agent: [Some-CLI]}\n", ""), ": recognise: missing"),
    (SOUND.replace("[Some-CLI]", "[]"), "user_agent: missing"),
    (place(regex=""), ": places[0].regex: missing; expected a pattern with a group"),
    (place(json=""), ": places[0]: expected exactly one of json, header"),
    (place(header="x-id"), ": places[0]: expected exactly one of json, header"),
    (place(linked="yes"), ": places[0].linked: 'yes' is neither true nor false"),
    (place(reason=""), ": places[0].reason: missing"),
    (place(client_version=""), ": places[0].client_version: missing"),
    (place(recordings="[a]"), ":12:17: places[0].recordings: expected two recordings that differ"),
    (place(recordings="[a, a]"), "expected two recordings that differ"),
    # what is none
    (
        SOUND.replace("some-cli\n", "Some CLI\n"),
        "is no name; expected a name of lower-case letters",
    ),
    (SOUND.replace("version: 3", "version: three"), ":2:10: version: 'three' is no version"),
    (SOUND.replace("version: 3", "version: 0"), "'0' is no version"),
    (SOUND.replace("Some-CLI]", "Some-CLI/1.0]"), "is no product; expected a word without"),
    (SOUND.replace("[Some-CLI]}", "[a], process: [/bin/a]}"), "'/bin/a' is no name of a program"),
    (SOUND.replace("[Some-CLI]}", "[a], body: [You are a shop.]}"), "tells no client from others"),
    (
        SOUND.replace("[Some-CLI]}", f"[a], body: ['say \\u0022{'a' * 40}']}}"),
        "expected 40 characters or more of its system prompt",
    ),
    (SOUND + "refusal: 424\n", "unknown key"),
    (place(json="id"), "is no JSON path"),
    (place(match="v1/chat"), "is no match pattern"),
    (place(match="*://*"), "names no endpoint; expected a path"),
    (place(match="*://*/*"), "names no endpoint; expected a path"),
    (place(regex="(["), "is no regular expression"),
    # what hides too much
    (place(regex="^[0-9a-f]{8}$"), "has no group; expected one"),
    (place(regex="^([0-9a-f]{4})([0-9a-f]{4})$"), "has 2 groups; expected one"),
    (place(regex="(.*)"), "would hide content: it finds 'Refund order 4711"),
    (place(regex="([0-9]+)"), "would hide content: it finds '4711'"),
    (place(regex=r"(\S+)$"), "would hide content"),
    (place(regex="([a-z]+)"), "would hide content"),
    *(
        (place(regex=regex), "would hide content")
        for regex in (
            *("([a-z ]{30,})", "(.{200,})", "^(delete everything.*)$", "^([0-9]{2,}) EUR"),
            *("customer ([A-Z][a-z]{5,})", '"amount":([0-9]{1,})', '"amount_in_cents":([0-9]{2,})'),
            *("^refund ([0-9]{2,})$", "^pay ([^ ]{9,}) now", "^(?:please )?([^0-9]{60,})$"),
            *("(?i)^X([A-Z ]{40,})", r"^then ((?:\pL+ )+)", "^to ([a-z0-9.]+@[a-z.]+)$"),
        )
    ),
    (
        place(json="", header="x-run", tool="sh"),
        "tool: is of no header field; expected it beside json",
    ),
    # what live, gate and effect rules go by
    (place(json="$._method"), "which live, gate and effect rules go by"),
    (place(json="$['_METHOD']"), "which live, gate and effect rules go by"),
    (place(json="$.items[0].idempotency_key"), "which live, gate and effect rules go by"),
    (place(json="$.ClientToken"), "which live, gate and effect rules go by"),
    *(
        (place(json="", header=name), "which live, gate and effect rules go by")
        for name in (
            *("host", "authorization", "cookie", "content-type", "accept", "range", "user-agent"),
            *("x-http-method-override", "x-original-url", "x-forwarded-host", "x-upstream-path"),
            *("idempotency-key", "x-idempotency-key", "x-api-key", "x-tenant-id", "x-amz-target"),
        )
    ),
    # a condition of what is no read
    (
        f"{HEAD}unconditional:\n  - {{match: POST *://*/v1/me, {EVIDENCE}}}\n",
        ": unconditional[0].match: is no read; expected GET and nothing else",
    ),
    (f"{HEAD}unconditional:\n  - {{match: '*://*/v1/me', {EVIDENCE}}}\n", "is no read"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_what_is_a_fault_at_load(text: str, said: str) -> None:
    """A profile that is not sound says where and why, and hides nothing."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("some-cli.yaml:")


@pytest.mark.parametrize("name", sorted(name.decode() for name in DECISIVE_NAMES))
def test_no_field_that_is_known_to_mean_something_is_left_out(name: str) -> None:
    """None of those that name tenants, resources, roles, versions or conditions."""
    with pytest.raises(ConfigError, match="which live, gate and effect rules go by"):
        read(place(json="", header=name))


def test_all_faults_are_told_at_once() -> None:
    """In the order of the file."""
    with pytest.raises(ConfigError) as caught:
        read(place(regex="(.*)", json="$._method", reason=""))
    lines = [int(fault.where.split(":")[1]) for fault in caught.value.faults]
    assert len(lines) == 3
    assert all(first <= second for first, second in pairwise(lines))


def test_a_configuration_turns_profiles_off_by_name() -> None:
    """A name that is none is a fault, so a mistyped one does not leave a profile on."""
    for profile in shipped_profiles():
        config = loads(f"profiles_off: [{profile.name}]")
        assert config.profiles_off == (profile.name,)
        assert profile not in find_profiles(config.profiles_off, config.profiles)
    with pytest.raises(ConfigError, match=r"profiles_off\[0\]: unknown value 'claude'"):
        loads("profiles_off: [claude]")


def test_a_configuration_adds_profiles_of_its_own(tmp_path: Path) -> None:
    """A path is relative to the configuration's folder; one with a shipped name takes that one's place."""
    (tmp_path / "own.yaml").write_text(SOUND)
    (tmp_path / "claude.yaml").write_text(SOUND.replace("some-cli\n", "claude-code\n"))
    config = loads("profiles: [own.yaml, claude.yaml]", base=tmp_path)
    found = find_profiles(config.profiles_off, config.profiles)
    assert [str(one) for one in found[-2:]] == ["some-cli 3", "claude-code 3"]
    assert sum(one.name == "claude-code" for one in found) == 1
    assert read(SOUND) in found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "profiles[0]: no such file: "),
        (b"\xff", "own.yaml cannot be read: "),
        (b"a" * 2_000_000, "own.yaml cannot be read: longer than"),
        (
            SOUND.replace("version: 3", "version: x").encode(),
            "own.yaml:2:10: version: 'x' is no version",
        ),
        (SOUND.replace("$.id", "$._method").encode(), "which live, gate and effect rules go by"),
    ],
)
def test_a_profile_of_its_own_that_is_not_sound_is_a_fault(
    data: bytes | None, said: str, tmp_path: Path
) -> None:
    """Of the configuration, at its place, with that in the profile."""
    if data is not None:
        (tmp_path / "own.yaml").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        loads("profiles: [own.yaml]", "playhead.yaml", base=tmp_path)
    assert str(caught.value).startswith("playhead.yaml:1:12: profiles[0]: ")
    assert said in str(caught.value)


def test_each_shipped_profile_is_sound() -> None:
    """Read with all checks it is the same."""
    for profile in shipped_profiles():
        assert parse_profile(profile.text, f"{profile.name}.yaml") == profile


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1:1: is empty"),
        ("a: [", ":1:5: not YAML"),
        (HEAD, "says nothing"),
        ("[]", "expected a mapping"),
    ],
)
def test_a_shipped_file_that_is_broken_says_so(text: str, said: str) -> None:
    """As any other."""
    with pytest.raises(ConfigError) as caught:
        parse_shipped_profile(text, "some-cli.yaml")
    assert said in str(caught.value)


def test_each_shipped_profile_is_the_only_one_for_its_products() -> None:
    """A client has one profile; its file is called as the profile is."""
    products = [product for one in shipped_profiles() for product in one.products]
    assert len(products) == len(set(products))
