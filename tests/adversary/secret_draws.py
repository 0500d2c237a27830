"""Draw values from recipes, so that no file of the repository contains text that reads like a secret.

A **recipe** is text in which each `<...>` is replaced. Blanks are removed. A recipe has a blank inside a prefix, so that the secret
scanner of a code host does not recognise the prefix.

    <A36>       36 characters of class A
    <B40-180>   40 to 180 characters of class B
    <uuid>      a random UUID, in lower case
    <crc62>     CRC-32 of all characters that were drawn so far, in base 62 and six characters, as GitHub and npm compute it
    <sp> <lt>   a blank and a less-than sign

Classes: A letters and digits, B those and `_-`, C those and `+/`, D digits, E bech32 in upper case, G upper case letters, H
hexadecimal in lower case, L lower case and digits, P syllables that can be pronounced, S base 32, T letters, U upper case and
digits, W letters, digits and `_`, X hexadecimal in both cases, Y letters, digits and signs without quotes and blanks.

Drawing is deterministic: the same generator gives the same value. If a value contains text that marks a placeholder (`example`,
`123456`, four equal characters ...), the value is drawn again.
"""

import math
import re
import uuid
import zlib
from collections import Counter
from functools import cache
from random import Random

LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
DIGITS = "0123456789"
ALNUM = DIGITS + UPPER + LOWER
CLASSES: dict[str, str] = {
    "A": ALNUM,
    "B": ALNUM + "_-",
    "C": ALNUM + "+/",
    "D": DIGITS,
    "E": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "G": UPPER,
    "H": DIGITS + "abcdef",
    "L": LOWER + DIGITS,
    "P": LOWER,
    "S": UPPER + "234567",
    "T": UPPER + LOWER,
    "U": UPPER + DIGITS,
    "W": ALNUM + "_",
    "X": DIGITS + "abcdefABCDEF",
    "Y": ALNUM + "!#%*+-.=@^_~",
}
_CLASS_NAMES = frozenset(UPPER)
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_DRAW = re.compile(
    r"<(?:(?P<name>uuid|crc62|sp|lt)|(?P<kind>[A-Z])(?P<least>\d+)(?:-(?P<most>\d+))?)>"
)
_PLACEHOLDER = re.compile(
    r"example|sample|dummy|placeholder|change|redacted|your|here|xxxx|\*\*\*\*|\.\.\.|000000|123456|abcdef|qwerty|deadbeef"
    r"|foobar|insert|replace|fake|lorem|test|(.)\1{3}|(.)\2\2.*(.)\3\3",
    re.IGNORECASE,
)


class BadRecipe(Exception):
    """A recipe cannot be expanded: it has an unknown class, maker or wrapping, or gives only placeholders."""


def base62(number: int, width: int) -> str:
    """Write a number with the digits 0-9, A-Z, a-z, padded with zeros to `width`."""
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = ALNUM[digit] + digits
    return digits.rjust(width, "0")


def crc62(drawn: str) -> str:
    """Compute the last six characters of a GitHub or npm token from its random part."""
    return base62(zlib.crc32(drawn.encode()), 6)


def _syllables(rng: Random, length: int) -> str:
    letters = ("bdfgklmnprstvz", "aeiou")
    return "".join(rng.choice(letters[place % 2]) for place in range(length))


@cache
def _parsed(recipe: str) -> tuple[tuple[str, str, int, int], ...]:
    """Split a recipe: (literal, name or class, least, most) for each draw, and the literal at the end."""
    recipe, parts, behind = recipe.replace(" ", ""), [], 0
    for found in _DRAW.finditer(recipe):
        kind = found["name"] or found["kind"]
        if kind in _CLASS_NAMES and kind not in CLASSES:
            raise BadRecipe(f"{recipe!r}: no class {kind}")
        least = int(found["least"] or 0)
        parts.append((recipe[behind : found.start()], kind, least, int(found["most"] or least)))
        behind = found.end()
    literals = [literal for literal, *_ in parts] + [recipe[behind:]]
    if any("<" in literal for literal in literals):
        raise BadRecipe(f"{recipe!r}: a < that begins no draw")
    return (*parts, (recipe[behind:], "", 0, 0))


def once(recipe: str, rng: Random) -> str:
    """Expand a recipe, whatever the value looks like; `draw` draws placeholders again."""
    made: list[str] = []
    drawn: list[str] = []
    for literal, kind, least, most in _parsed(recipe):
        match kind:
            case "":
                one = ""
            case "sp" | "lt":
                one = {"sp": " ", "lt": "<"}[kind]
            case "crc62":
                one = crc62("".join(drawn))
            case "uuid":
                one = str(uuid.UUID(int=rng.getrandbits(128), version=4))
                drawn.append(one)
            case _:
                length = least if least == most else rng.randint(least, most)
                one = (
                    _syllables(rng, length)
                    if kind == "P"
                    else "".join(rng.choices(CLASSES[kind], k=length))
                )
                drawn.append(one)
        made += [literal, one]
    return "".join(made)


def draw(recipe: str, rng: Random) -> str:
    """Expand a recipe to one value whose drawn characters are no placeholder.

    A short draw of several classes contains each of lower case, upper case and digits that its class has.
    Raises: BadRecipe.
    """
    for _ in range(1000):
        made = once(recipe, rng)
        if _plain(recipe, made):
            return made
    raise BadRecipe(f"{recipe!r}: gives only placeholders")


def _plain(recipe: str, made: str) -> bool:
    """Check that a value contains every class of characters that it may contain, no run and no mark of a placeholder."""
    found = re.fullmatch(_regex(recipe), made)
    assert found, (recipe, made)
    for kind, drawn in zip(_kinds(recipe), found.groups(), strict=True):
        if kind in "DPG" or len(drawn) < 8:
            continue
        if _PLACEHOLDER.search(drawn) or entropy(drawn) < (2.9 if len(drawn) > 15 else 2.6):
            return False
        wanted = [part for part in (LOWER, UPPER, DIGITS) if set(part) <= set(CLASSES[kind])]
        wanted += [DIGITS, LOWER[:6]] if kind in "HX" else []
        if any(not set(part) & set(drawn) for part in wanted):
            return False
        if (
            not drawn[0].isalnum() or not drawn[-1].isalnum()
        ):  # a boundary is a boundary for every reader
            return False
    return True


def _kinds(recipe: str) -> str:
    return "".join(
        found["kind"] for found in _DRAW.finditer(recipe.replace(" ", "")) if found["kind"]
    )


@cache
def _regex(recipe: str) -> str:
    recipe, made, behind = recipe.replace(" ", ""), "", 0
    for found in _DRAW.finditer(recipe):
        made += re.escape(recipe[behind : found.start()])
        behind = found.end()
        match found["name"]:
            case "sp":
                made += " "
            case "lt":
                made += "<"
            case "uuid":
                made += _UUID
            case "crc62":
                made += "[0-9A-Za-z]{6}"
            case _:
                most = found["most"] or found["least"]
                made += f"([{re.escape(CLASSES[found['kind']])}]{{{found['least']},{most}}})"
    return made + re.escape(recipe[behind:])


def shape(recipe: str) -> re.Pattern[str]:
    """Give the expression that every value of a recipe matches as a whole."""
    return re.compile(_regex(recipe))


def entropy(text: str) -> float:
    """Compute the bits a character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts) + 0.0
