"""Each case about secrets expands to its stated shape, and no file of the repository contains an expanded value.

The heads of secrets_formats.yaml, secrets_places.yaml, secrets_benign.yaml, secrets_matching.yaml, secrets_placeholders.yaml and
secrets_hostile.yaml explain the purpose and the keys of the cases.
"""

import base64
import json
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import ahocorasick_rs
import pytest

from playhead.tests.support.counts import FULL

from . import secret_recipes
from .place import need_client
from .secret_bodies import body, pieces
from .secret_draws import BadRecipe, crc62, entropy, shape
from .secret_makers import make
from .secret_recipes import FILES, Made, drawn_parts, expand, hostile, learned
from .secret_texts import change, filled

ROOT = Path(__file__).parents[2]
LEAST = {
    "formats": 135,
    "places": 60,
    "benign": 120,
    "matching": 60,
    "placeholders": 60,
    "hostile": 130,
}
HEADS = ("header", "trailer", "query", "path", "userinfo", "absolute", "reason-phrase")
KEYS = {
    "formats": "id number kind value also begin then each values length text wrap steps accept where unchecked doubt reason",
    "personal": "id pii values text reason",
    "passing": "id side takes build named found reason",
    "kept": "id look of after found reason",
    "benign": "id value plain shape place text build side meaningful changed written doubt reason",
    "matching": "id kind values both recorded present store expected matched place reports config hostile doubt reason",
    "placeholders": "id kind value text type wrap place gets code needs original declared config doubt reason",
    "hostile": "id bytes kind repeat fresh drawn formats halves learned-values begin end escaped coded learned pii reason",
}


@cache
def read(name: str) -> dict[str, Any]:
    """Read a file once."""
    return secret_recipes.read(name)


@cache
def tables() -> dict[str, list[dict[str, Any]]]:
    """Give all lists of cases by the name of their keys in `KEYS`."""
    found = {name: read(name)["cases"] for name in FILES if name != "places"}
    return {
        **found,
        "personal": read("formats")["personal"],
        "passing": read("places")["passing"],
        "kept": read("places")["kept"],
    }


@cache
def made(table: str) -> list[Made]:
    """Expand all cases of a table."""
    return [one for case in tables()[table] for one in expand(case)]


# ---- the files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_there_are_enough_cases(name: str) -> None:
    """As many as the redaction is judged by, or more."""
    cases = sum(
        len(found) for key, found in read(name).items() if key in ("cases", "passing", "kept")
    )
    assert cases >= LEAST[name]


@pytest.mark.parametrize("table", KEYS)
def test_ids_are_unique_and_every_case_has_a_reason(table: str) -> None:
    """And no key is misspelt."""
    cases = tables()[table]
    assert [
        name for name, count in Counter(case["id"] for case in cases).items() if count > 1
    ] == []
    for case in cases:
        assert set(case) <= set(KEYS[table].split()), case["id"]
        assert isinstance(case["reason"], str), case["id"]
        assert len(case["reason"]) > 2, case["id"]


def test_a_doubt_names_the_same_file() -> None:
    """`as X` leads to the case that has the words."""
    for table, cases in tables().items():
        ids = {case["id"] for case in cases}
        for case in cases:
            doubt = case.get("doubt", "")
            if doubt.startswith("as "):
                assert doubt[3:] in ids, (table, case["id"])


# ---- formats -----------------------------------------------------------------------------------------------------------------


def test_every_format_of_the_table_is_there() -> None:
    """The numbers of the table are complete."""
    numbers = {case.get("number") for case in tables()["formats"]}
    assert set(range(1, 151)) - numbers == set()


def test_closed_words_are_closed() -> None:
    """Kinds, places and tests have the words that the head explains."""
    for case in tables()["formats"]:
        assert case["kind"] in ("by format", "credential place", "by name"), case["id"]
        assert case["where"] in ("prompt", "fields"), case["id"]
        assert case.get("accept", "none") in ("random", "hex", "checksum", "header", "none"), case[
            "id"
        ]
    places = {case["id"] for case in tables()["passing"]}
    steps = {step["place"] for case in tables()["formats"] for step in case.get("steps", ())}
    assert steps - places == set()


@pytest.mark.parametrize("table", ["formats", "personal"])
def test_every_recipe_expands_to_its_shape(table: str) -> None:
    """In length and characters, and with what its test of acceptance wants."""
    for one in made(table):
        for name, value in one.values.items():
            recipe = one.recipes[name]
            if isinstance(recipe, str):
                assert shape(recipe).fullmatch(value), one.name
                assert " " not in value, one.name
        if "length" in one.case:
            least, _, most = str(one.case["length"]).partition("-")
            assert int(least) <= len(one.values["value"]) <= int(most or least), one.name
        assert one.secrets, one.name
        assert all(len(secret) > 3 for secret in one.secrets), one.name
        assert "{value" not in one.text or one.case.get("steps"), one.name


def _is_accepted(one: Made) -> bool:
    value = one.values["value"]
    match one.case["accept"]:
        case "checksum":
            return value[-6:] == crc62(value[4:-6])
        case "header":
            head = value.split(".")[0]
            found = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
            return "alg" in found or "enc" in found
        case "hex":
            part = max(re.findall("[0-9a-fA-F-]+", value), key=len).replace("-", "")
            return (
                entropy(part) >= 2.9
                and bool(re.search("[0-9]", part))
                and bool(re.search("[a-fA-F]", part))
            )
        case "random":
            return entropy(value) >= (2.6 if len(value) < 24 else 3.0)
    return True


def test_every_value_proves_itself_as_it_says() -> None:
    """A checksum is right, a header decodes, and what is random has the entropy of random text."""
    assert [
        one.name for one in made("formats") if "accept" in one.case and not _is_accepted(one)
    ] == []


def test_values_are_in_their_texts() -> None:
    """As they are, where nothing is wrapped around them."""
    for one in made("formats"):
        if not one.case.get("wrap") and not re.search(r"\{(basic|\w+\|)", one.case.get("text", "")):
            for name, value in one.values.items():
                assert any(value in text for _, text in one.steps) or one.case.get("steps"), (
                    one.name,
                    name,
                )


def test_the_same_seed_gives_the_same_values() -> None:
    """And another seed gives other values."""
    case = tables()["formats"][0]
    assert expand(case) == expand(case)
    assert expand(case)[0].values != expand(case, "another")[0].values


@pytest.mark.parametrize("kind", ["rsa", "pkcs8-rsa", "ec", "pkcs8-ec", "ed25519", "openssh"])
def test_keys_load(kind: str) -> None:
    """What is no key would be no test of a client."""
    from cryptography.hazmat.primitives import serialization

    key = make({"make": "pem", "type": kind}, Random(1)).encode()
    load = (
        serialization.load_ssh_private_key
        if kind == "openssh"
        else serialization.load_pem_private_key
    )
    assert load(key, None)


def test_positions_take_every_format() -> None:
    """Each has an id, a reason and a place for the value."""
    positions = read("formats")["positions"]
    assert len({case["id"] for case in positions}) == len(positions)
    for case in positions:
        assert set(case) == {"id", "text", "reason"}
        assert "VALUE" in filled(case["text"], {"value": "VALUE"})


# ---- places ----------------------------------------------------------------------------------------------------------------------


def test_every_body_can_be_built() -> None:
    """Joined again, it contains the text once, unless a coding or several events hide it."""
    for case in tables()["passing"]:
        build = case["build"]
        assert case["side"] in ("request", "answer", "both"), case["id"]
        assert case["takes"] in ("prompt", "fields", "value"), case["id"]
        assert "{text}" in json.dumps(build) or "grpc" in build, case["id"]
        if next(iter(build)) in HEADS:
            continue
        chunks = body(build, "zq7kExpanded")
        assert chunks, case["id"]
        assert all(chunks), case["id"]
        plain = not {"coding", "deltas", "encode", "cut", "before"} & set(build)
        if plain and not {"base64", "json-ascii"} & set(build) and build.get("grpc", 1) == 1:
            assert b"zq7kExpanded" in b"".join(chunks), case["id"]


def test_what_was_cut_into_deltas_is_whole_again() -> None:
    """The pieces of a text, joined, are the text."""
    for count in (1, 2, 7, 40):
        assert "".join(pieces("a secret of 25 characters", count)) == "a secret of 25 characters"


# ---- what only looks like a secret ---------------------------------------------------------------------------------------------------


def test_every_benign_value_expands() -> None:
    """Its text contains it, it has a known place, and it can be changed."""
    places = {case["id"] for case in tables()["passing"]}
    for one in made("benign"):
        case, value = one.case, one.values["value"]
        assert ("plain" in case) != ("value" in case), one.name
        assert case["place"] in places, one.name
        assert isinstance(case["meaningful"], bool), one.name
        assert value in one.text, one.name
        assert case.get("changed", change(value)) != value, one.name


def test_words_with_the_shape_of_a_format_have_it() -> None:
    """Otherwise the case would say nothing about the test of acceptance."""
    formats = {case["id"]: case for case in tables()["formats"]}
    for one in made("benign"):
        if "shape" in one.case:
            found = secret_recipes.recipes(formats[one.case["shape"]])
            shapes = [shape(str(recipe["value"])) for recipe in found]
            assert any(each.fullmatch(one.values["value"]) for each in shapes), one.name


def test_most_benign_values_are_meaningful() -> None:
    """A change of most of them has to be a divergence."""
    cases = tables()["benign"]
    assert sum(case["meaningful"] for case in cases) >= 100
    assert sum("written" in case for case in cases) >= 20


# ---- matching ------------------------------------------------------------------------------------------------------------------------


def test_every_case_of_matching_names_its_values() -> None:
    """Each `${name}` is a value, an answer or a hostile text, and each value is used."""
    texts = {case["id"] for case in tables()["hostile"]}
    for case in tables()["matching"]:
        used = {
            name.partition("|")[0]
            for name in re.findall(
                r"\$\{([^}]+)\}", json.dumps([case["recorded"], case["present"]])
            )
        }
        values = set(case["values"])
        assert {name for name in used if not name[0].isdigit()} - values - {"hostile"} == set(), (
            case["id"]
        )
        assert values - used == set(), case["id"]
        assert ("hostile" in used) == (case.get("hostile") in texts), case["id"]
        expand(case)


def test_every_case_of_matching_has_a_verdict() -> None:
    """For each request of the replay, from a closed set of words."""
    for case in tables()["matching"]:
        expected = case["expected"]
        verdicts = expected if isinstance(expected, list) else [expected]
        assert set(verdicts) <= {"served", "divergence"}, case["id"]
        assert len(verdicts) in (1, len(case["present"])), case["id"]
        assert case["store"] in ("same", "other"), case["id"]
        assert case.get("matched") in (None, "exact", "canonical"), case["id"]
        if "divergence" in verdicts:
            assert "place" in case or "exit 125" in case.get("reports", ()), case["id"]


# ---- placeholders ----------------------------------------------------------------------------------------------------------------------


def test_every_kind_of_client_has_cases() -> None:
    """Twelve kinds."""
    kinds = read("placeholders")["kinds"]
    assert len(kinds) == 12
    assert {case["kind"] for case in tables()["placeholders"]} == set(kinds)


def _got(one: Made) -> str:
    wanted = one.case.get("gets", "{value}")
    return one.text if wanted == "body" else filled(wanted, one.values)


@pytest.mark.parametrize("case", tables()["placeholders"], ids=lambda case: case["id"])
def test_the_lines_of_a_client_hold_for_the_original(case: dict[str, Any]) -> None:
    """Or fail for it, where the case says so: then they are about the placeholder alone."""
    need_client(case)
    one = expand(case)[0]
    given = {"value": _got(one), "original": one.values["value"]}
    if case.get("original") == "fails":
        with pytest.raises(AssertionError):
            exec(case["code"], given)
    else:
        exec(case["code"], given)


# ---- hostile texts -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", tables()["hostile"], ids=lambda case: case["id"])
def test_a_hostile_text_has_its_size(case: dict[str, Any]) -> None:
    """A megabyte; a smaller one of each is made every day."""
    assert case["bytes"] == 1 << 20
    size = case["bytes"] if FULL else 1 << 14
    assert len(hostile(case, size=size)) == size
    assert len(learned(case)) == case.get("learned", 40)


# ---- the repository -------------------------------------------------------------------------------------------------------------------------


def tracked() -> list[Path]:
    """Give the files of the repository, those that are not committed yet included."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("no git, or no clone")
    return [
        path
        for name in done.stdout.decode().split("\0")
        if name and (path := ROOT / name).is_file()
    ]


def test_no_file_contains_a_value_in_the_clear() -> None:
    """What a scanner of a code host finds in a clone was not put there by these cases."""
    values = {
        part
        for table in ("formats", "benign", "matching", "placeholders")
        for one in made(table)
        for name, recipe in one.recipes.items()
        for part in (one.values[name], *drawn_parts(recipe, one.values[name]))
        if len(part) >= 12 and not (isinstance(recipe, str) and "<" not in recipe)
    }
    assert len(values) > 1500
    search = ahocorasick_rs.BytesAhoCorasick([value.encode() for value in sorted(values)])
    assert {
        str(path) for path in tracked() if search.find_matches_as_indexes(path.read_bytes())
    } == set()


@pytest.mark.parametrize(
    "wrong", ["<K5>", "a<b", {"make": "nothing"}, {"make": "pem", "type": "none"}], ids=str
)
def test_a_bad_recipe_is_refused(wrong: Any) -> None:
    """With the exception of its own, so that no case is silently empty."""
    with pytest.raises(BadRecipe):
        make(wrong, Random(1))
