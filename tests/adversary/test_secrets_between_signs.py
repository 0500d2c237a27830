"""Each format of the table behind and before each sign: in a file and in a prompt, at the beginning and at the end of a line and of a text."""

import base64
import json
import re
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from functools import cache
from itertools import batched
from random import Random
from typing import Any

import pytest

from playhead.tape.redaction.finding.format_table import FORMATS, Format, expand
from playhead.tape.redaction.redactor import Redactor

_DRAWS = 60
_LONGER = 12
"""Characters that a value may have beyond the least."""
_AT_ONCE = 16
"""Values in one text: a short text with many is searched in part."""
_PART = re.compile(r"[A-Za-z0-9]+")


def _draw(parts: Any, rng: Random) -> str:
    """Draw a text that a parsed pattern matches."""
    made = ""
    for operation, given in parts:
        match str(operation):
            case "LITERAL":
                made += chr(given)
            case "IN":
                made += rng.choice("".join(_chars(given)))
            case "MAX_REPEAT":
                least, most, inner = given
                count = rng.randint(least, min(int(most), least + _LONGER))
                made += "".join(_draw(inner, rng) for _ in range(count))
            case "SUBPATTERN":
                made += _draw(given[3], rng)
            case "BRANCH":
                made += _draw(rng.choice(given[1]), rng)
            case other:
                raise AssertionError(other)
    return made


def _chars(given: Any) -> Iterator[str]:
    for kind, what in given:
        if str(kind) == "LITERAL":
            yield chr(what)
        else:
            yield "".join(map(chr, range(what[0], what[1] + 1)))


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _token(row: Format, rng: Random) -> str:
    """Make a JSON Web Token: its first part has to decode."""
    if row.name == "jwt":
        head, sizes = b'{"alg":"HS256","typ":"JWT"}', (0, 32)
        claims = _coded(json.dumps({"sub": rng.randbytes(9).hex()}).encode())
        return f"{_coded(head)}.{claims}.{_coded(rng.randbytes(sizes[1]))}"
    head = b'{"alg":"RSA-OAEP","enc":"A256GCM"}'
    return ".".join(map(_coded, (head, *map(rng.randbytes, (200, 12, 80, 16)))))


def _make(row: Format, rng: Random) -> str:
    if row.test == "header":
        return _token(row, rng)
    return (row.begins[0] if row.begins else "") + _draw(parser.parse(expand(row.then)), rng)


def _announced(row: Format, text: str) -> str:
    """Write a text behind a word that has to be near."""
    return f"{row.near[0]}: {text}" if row.near else text


def _redact(said: str) -> str:
    return Redactor(b"k" * 32).text(said.encode()).decode()


def _in_prompt(said: str) -> str:
    body = {"messages": [{"role": "user", "content": said}]}
    kept: str = json.loads(_redact(json.dumps(body)))["messages"][0]["content"]
    return kept


def _is_left(row: Format, value: str, kept: str) -> bool:
    """Say whether the last long part of a value is still in a text."""
    secret = value.removeprefix(row.begins[0] if row.begins else "")
    parts = [part for part in _PART.findall(secret) if len(part) >= 12]
    return (parts[-1] if parts else secret[-12:]) in kept


@cache
def _values() -> dict[str, tuple[Format, str]]:
    """One value of each row, that is found between blanks: a draw may be like words."""
    found = {}
    for row in FORMATS:
        rng = Random(row.name)
        for _ in range(_DRAWS):
            value = _make(row, rng)
            if not _is_left(row, value, _redact(_announced(row, f"a {value} b"))):
                break
        found[row.name] = row, value
    return found


def _left(form: str) -> list[str]:
    """Name the rows whose value stays in a text of some form."""
    left = set()
    for rows in batched(_values().items(), _AT_ONCE, strict=False):
        said = "\n".join(_announced(row, "\n" + form.format(value)) for _, (row, value) in rows)
        for redact in (_redact, _in_prompt):
            kept = redact(said)
            assert len(kept) == len(said)
            left |= {name for name, (row, value) in rows if _is_left(row, value, kept)}
    return sorted(left)


def _left_alone(form: str) -> list[str]:
    """Name the rows whose value stays where it is the text."""
    left = set()
    for name, (row, value) in _values().items():
        said = form.format(value)
        if not row.near and any(
            _is_left(row, value, redact(said)) for redact in (_redact, _in_prompt)
        ):
            left.add(name)
    return sorted(left)


def test_each_format_is_found_between_blanks() -> None:
    """So the cases below say something."""
    assert _left("a {} b") == []


@pytest.mark.parametrize(
    "form",
    [
        *("-{}", "_{}", "+{}", "*{}", ">{}", "|{}", "({}", "={}", ":{}", "\t{}", "--{}", "__{}", "**{}", "-\t{}", "#{}", "@{}", "~{}", "!{}", "?{}", "&{}", ",{}", ";{}", "[{}", "<{}", "{{{}"),
        *("-{}-", "_{}_", "__{}__", "**{}**", "*{}*", "--{}--", "|{}|", "({})", '"{}"', "'{}'", "`{}`", '"_{}_"', "`-{}`", "> {}", "> -{}", "- {}", "[{}]", "<{}>", "\t{}\t", "k={};", "k:{},"),
        *("a -{} b", "a _{}_ b", "(_{}_)", "a | -{} | b", "{}", " {}", "{} ", "{}\r", "x\t-{}", "\u00e4_{}_\u00e4", "\u201c-{}\u201d"),
        *("-__{}__", "+_{}_", "- __{}__", "---{}", "____{}____"),
    ],
)  # fmt: skip
def test_a_format_is_found_behind_and_before_signs(form: str) -> None:
    """Lines of a diff, Markdown, lists, quotes, options: `-` and `_` are signs as others are, where no name is before or behind them."""
    assert _left(form) == []


@pytest.mark.parametrize("form", ["{}", "-{}", "__{}__", "_{}", "{}\n", "\n-{}"])
def test_a_format_is_found_as_the_whole_text(form: str) -> None:
    """At both ends of a file, and of the string of a prompt."""
    assert _left_alone(form) == []


IN_NAMES = ["KEY_{}", "my-{}", "KEY_{}_OLD", "my-{}-old", "the_key__{}__", "a-_{}"]
WORDS = (
    *("azure-sas", "deepseek-like", "elevenlabs", "firecrawl", "klaviyo", "launchdarkly", "lob"),
    *("infisical", "mailchimp", "mailgun", "mysql-hash", "nt-hash", "twilio", "twitter-bearer"),
)
"""Rows that stay behind a word and a sign: so begin names of objects, whose rest is a hash or an id."""


@pytest.mark.parametrize("form", IN_NAMES)
def test_a_format_is_found_in_a_name(form: str) -> None:
    """Behind a word and a sign, and before them; but what is as likely the name of an object."""
    assert set(_left(form)) - set(WORDS) == set()


SHA = "3f786850e387550fdab836ed7e6dc881de23001b"
MD5 = "0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d"
UUID = "0a9b8c7d-6e5f-4a3b-9c1d-0e9f8a7b6c5d"


@pytest.mark.parametrize(
    "said",
    [
        *(f"cache-key-{MD5}", f"web-sdk-{UUID}", f"public-api-{UUID}", f"messages-sk-{MD5}.js"),
        *(f"messages_sk_{SHA[:32]}.js", f"tile-fc-{MD5}", f"TASK_SK{MD5}", f"backup-{MD5}-us1"),
        *(f"-{UUID}", f"_{SHA}_", f"commit-{SHA}", f"-{SHA}\n+{SHA[::-1]}", f"__{MD5}__"),
        *(f"index {SHA[:7]}..{SHA[7:14]}", f"sha256:{MD5}{MD5}", f"etag:{MD5}", f"a:{MD5}:b"),
        *(f"{MD5}{MD5}:{MD5}", f"{MD5}:{MD5}{MD5}", f"{MD5[:16]}:{MD5}"),
        "my_hf_model_name_of_some_length_or_other",
        "foo-hf_transformersmodelnamesarewordsmostly",
        "-hf_transformersmodelnamesarewordsmostly",
        "task-sk-learn-pipeline-version-2",
        "--sk-button-background-color-hover-active",
        ".sk-fading-circle-delay-animation{color:red}",
        "__live_view_component_with_a_very_long_name_",
        "-pa-the-settings-of-the-control-panel-of-a-house",
        "test_re_compiles_a_pattern_that_is_remembered",
        "a-key-of-the-house_and_a_secret_of_the_garden",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "npm_package_dependencies_react_scripts_version",
        "sk_live_" + "x" * 24,
        "_" * 4000,
        "-" * 4000,
        "-_" * 2000,
    ],
)  # fmt: skip
def test_names_hashes_and_ids_stay(said: str) -> None:
    """Names of caches, programs, styles and files, hashes of commits, ids, lines of signs."""
    assert _redact(said) == said
    assert _in_prompt(said) == said


def test_a_value_in_bold_is_the_value() -> None:
    """Its placeholder is the one that it has elsewhere: the signs around are none of it."""
    for name in ("figma", "vault", "dockerhub", "gitlab", "huggingface", "google-api"):
        value = _values()[name][1]
        if value[-1] in "_-":
            continue
        plain, bold, removed = _redact(f"{value}\n__{value}__\n-{value}\n").splitlines()
        assert bold == f"__{plain}__", name
        assert removed == f"-{plain}", name
