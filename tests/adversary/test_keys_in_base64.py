"""Keys of all formats of the table inside base64, behind 0, 1 and 2 other bytes: a file of a code host, a data URL, a manifest of Kubernetes."""

import base64
import json
import random
import re
from functools import cache
from urllib.parse import quote

import pytest

from playhead.tape.redaction.finding.format_table import FORMATS, expand
from playhead.tape.redaction.redactor import Redactor

_UNIT = re.compile(r"(\\.|\[[^\]]*\]|[^\\\[(|?*+{])(?:\{(\d+)(?:,(\d*))?\})?")
LEFT = {"twilio", "mysql-hash", "sha-crypt"}
"""Formats whose prefix has fewer than three characters."""


@cache
def _signs(unit: str) -> str:
    return "".join(chr(code) for code in range(33, 127) if re.fullmatch(unit, chr(code)))


def _draw(pattern: str, drawn: random.Random) -> str | None:
    """Draw a text of a pattern that is classes alone."""
    text, at = "", 0
    while at < len(pattern):
        unit = _UNIT.match(pattern, at)
        if unit is None:
            return None
        signs = _signs(unit[1])
        least = int(unit[2] or 1)
        most = int(unit[3] or least) if unit[3] != "" else least
        text += "".join(drawn.choices(signs, k=min(most, max(least, 24))))
        at = unit.end()
    return text


@cache
def _keys() -> list[tuple[str, str]]:
    """Give a key of each format that is found as it is, and each of its prefixes."""
    drawn = random.Random(18)
    found: list[tuple[str, str]] = []
    for row in FORMATS:
        for begins in row.begins:
            for _ in range(20):
                rest = _draw(expand(row.then), drawn)
                if rest is None:
                    break
                key = begins + rest
                if key not in Redactor(b"k" * 32).text(f"see {key} ok".encode()).decode():
                    found.append((row.name, key))
                    break
    return found


def test_most_formats_can_be_drawn() -> None:
    """The others have tests of their own."""
    assert len({name for name, _ in _keys()}) >= 110


@pytest.mark.parametrize("before", ["a = '", "aa = '", "aaa = '"])
@pytest.mark.parametrize("form", ["json", "url"])
def test_a_key_in_base64_is_replaced(before: str, form: str) -> None:
    """At each of the three places that base64 has for a byte."""
    left = set()
    for name, key in _keys():
        plain = f"import client\n{before}{key}'\nclient.run(1)\n".encode()
        if form == "json":
            text = json.dumps({"encoding": "base64", "content": base64.b64encode(plain).decode()})
            kept = json.loads(Redactor(b"k" * 32).text(text.encode()))["content"]
        else:
            text = "data:text/plain;base64," + base64.urlsafe_b64encode(plain).decode()
            kept = Redactor(b"k" * 32).text(text.encode()).decode().partition(",")[2]
        new = base64.urlsafe_b64decode(kept.replace("+", "-").replace("/", "_"))
        assert new.startswith(b"import client\n")
        assert new.endswith(b"'\nclient.run(1)\n")
        if key.encode() in new:
            left.add(name)
    assert left <= LEFT


def test_base64_of_words_stays() -> None:
    """That have short prefixes in them."""
    plain = (
        b"re_compile the pattern of api-client, sdk-tools; key-value of SKUs: pa-th, hf_token_name\n"
        * 40
    )
    for text in (base64.b64encode(plain), quote(base64.b64encode(plain)).encode()):
        assert Redactor(b"k" * 32).text(text) == text
