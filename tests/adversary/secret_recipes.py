"""Expand the cases of secrets_*.yaml: their values, the texts around them, and hostile texts.

Recipes are explained in secret_draws.py, makers in secret_makers.py, wrappings in secret_texts.py, and the keys of the cases in the
heads of the files. Expansion is deterministic: the same seed and the same case give the same value.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from .secret_draws import CLASSES, BadRecipe, once, shape
from .secret_makers import make
from .secret_texts import filled, wrapped

FOLDER = Path(__file__).parent
FILES = ("formats", "places", "benign", "matching", "placeholders", "hostile")
SEED = "secrets"
VALUES: dict[str, tuple[str, ...]] = {
    "strong": ("<A16>", "<A24>", "<H32>", "<C40>", "<uuid>", "<Y20>"),
    "plain": ("<A16>", "<A24>", "<H32>", "<A40>", "<uuid>", "<B24>"),
    "human": ("<G1><P6><D4>", "<P5>-<P6>-<D2>", "<G1><P7>!<D2>"),
}
"""What `each` of a case names: random values, those without signs that need quoting, and what people make up."""


@dataclass(frozen=True)
class Made:
    """One case with its values, and the text that contains them."""

    case: Mapping[str, Any]
    name: str
    """Its id, and the number of the prefix where there are several."""
    recipes: Mapping[str, str | Mapping[str, Any]]
    values: Mapping[str, str]
    text: str
    steps: tuple[tuple[str, str], ...]
    """Places and texts, one after the other; a case without steps has one, at any place."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parts of all values that say something: none of them may be found at rest, as it is or decoded."""
        return tuple(
            part
            for name, value in self.values.items()
            for part in drawn_parts(self.recipes[name], value)
        )


def drawn_parts(recipe: str | Mapping[str, Any], value: str) -> list[str]:
    """Give the parts of a value that a placeholder may not keep.

    The drawn parts of at least eight characters, or the whole value where all are shorter. Of a JWT the signature, of a JWE
    what is behind its header, of a key file its body without the first 24 characters, in lines of at least 16.
    """
    if isinstance(recipe, str):
        found = shape(recipe).fullmatch(value)
        assert found, (recipe, value)
        long = [part for part in found.groups() if len(part) > 7]
        return long or [value]
    match recipe["make"]:
        case "jwt":
            return [value.rpartition(".")[2]]
        case "jwe":
            return [part for part in value.split(".")[1:] if len(part) > 15]
        case "pem":
            lines = value.splitlines()[1:-1]
            return [part for part in (lines[0][24:], *lines[1:]) if len(part) > 15]
        case "putty":
            behind = value.partition("Private-Lines:")[2].splitlines()[1:]
            return [line for line in behind if line and ":" not in line]
        case _:
            return [value]


@cache
def read(name: str) -> dict[str, Any]:
    """Read one of the files by the end of its name, as `formats`. All callers share what is read, and change nothing in it."""
    text = (FOLDER / f"secrets_{name}.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


def recipes(case: Mapping[str, Any]) -> Iterator[dict[str, str | Mapping[str, Any]]]:
    """Give the recipes of a case by name: once for each prefix in `begin`, each value of `each`, each recipe in `also`."""
    more = dict(case.get("values", {}))
    found: list[str | Mapping[str, Any]]
    if "begin" in case:
        found = [f"{prefix}{case['then']}" for prefix in case["begin"]]
    elif "each" in case:
        found = [*VALUES[case["each"]]]
    elif "value" in case:
        found = [case["value"], *case.get("also", ())]
    else:
        yield more
        return
    for one in found:
        yield {"value": one, **more}


def expand(case: Mapping[str, Any], seed: str = SEED) -> list[Made]:
    """Make all variants of a case of secrets_formats.yaml or any other with `value`, `begin` or `values`.

    Raises: BadRecipe.
    """
    made = []
    if "plain" in case:
        values = {"value": str(case["plain"])}
        text = filled(case.get("text", "{value}"), values)
        return [Made(case, str(case["id"]), {}, values, text, (("any", text),))]
    every = list(recipes(case))
    for number, found in enumerate(every):
        name = f"{case['id']}-{number}" if len(every) > 1 else str(case["id"])
        rng = Random(f"{seed}/{name}")
        values = {key: make(recipe, rng) for key, recipe in found.items()}
        text = wrapped(filled(case.get("text", "{value}"), values), case.get("wrap", ()))
        steps = tuple(
            (step["place"], filled(step["text"], values)) for step in case.get("steps", ())
        )
        made.append(Made(case, name, found, values, text, steps or (("any", text),)))
    return made


def learned(case: Mapping[str, Any], seed: str = SEED) -> list[str]:
    """Make the values that were learned before a hostile text is searched."""
    rng = Random(f"{seed}/{case['id']}/learned")
    return [once("<A24>", rng) for _ in range(int(case.get("learned", 40)))]


def hostile(case: Mapping[str, Any], seed: str = SEED, size: int | None = None) -> bytes:
    """Make a hostile text of exactly `bytes` bytes, or of `size`; secrets_hostile.yaml explains the keys.

    Raises: BadRecipe.
    """
    rng, size = Random(f"{seed}/{case['id']}"), size or int(case["bytes"])
    begin, end = (once(str(case.get(name, "")), rng).encode() for name in ("begin", "end"))
    room = size - len(begin) - len(end)
    match case:
        case {"repeat": str(recipe)}:
            middle = _cycled([once(recipe, rng)], room)
        case {"fresh": str(recipe)}:
            least = min(len(once(recipe, rng)) for _ in range(9))
            middle = "".join(once(recipe, rng) for _ in range(room // least + 9)).encode()
        case {"drawn": "bytes"}:
            middle = rng.randbytes(room)
        case {"drawn": str(kind)} if kind in CLASSES:
            middle = "".join(rng.choices(CLASSES[kind], k=room)).encode()
        case {"formats": str(part)} if part in PARTS:
            middle = _of_formats(part, rng, room)
        case {"halves": True}:
            middle = _cycled([value[:12] for value in learned(case, seed)], room)
        case {"learned-values": True}:
            middle = _cycled(learned(case, seed), room)
        case _:
            raise BadRecipe(
                f"{case['id']}: neither repeat, fresh, drawn, formats, halves nor learned-values"
            )
    for _ in range(int(case.get("escaped", 0))):
        middle = json.dumps(middle.decode("latin-1")).encode()
    if coded := int(case.get("coded", 0)):
        parts = (middle[at : at + coded] for at in range(0, len(middle), coded))
        middle = b"\n".join(map(base64.b64encode, parts))
    if len(middle) < room:
        raise BadRecipe(f"{case['id']}: {len(middle)} bytes of {room}")
    return begin + middle[:room] + end


PARTS: dict[str, Callable[[str], str]] = {
    "whole": lambda key: key + " ",
    "cut": lambda key: key[:-1] + " ",
    "beginnings": lambda key: key[:24] + " ",
    "joined": lambda key: key[:24],
}
"""What is taken of each key for a text that is made of the keys of all formats."""


def _of_formats(part: str, rng: Random, room: int) -> bytes:
    """Draw keys of all formats, one behind the other, until there are enough bytes."""
    drawn = [
        recipe
        for case in read("formats")["cases"]
        if case["kind"] == "by format"
        for one in recipes(case)
        if isinstance(recipe := one.get("value"), str)
    ]
    made: list[str] = []
    size = 0
    while size < room:
        made += [PARTS[part](once(recipe, rng)) for recipe in drawn]
        size = sum(map(len, made))
    return "".join(made).encode()


def _cycled(units: Sequence[str], room: int) -> bytes:
    unit = "".join(units).encode()
    return unit * (room // len(unit) + 1)
