"""Write one text in another: wrappings, and values in the places of a text.

A **wrapping** is a name in `WRAPPINGS` or a text that contains `{text}`.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from .secret_draws import DIGITS, LOWER, UPPER, BadRecipe


def b64url(data: bytes) -> str:
    """Write base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64-lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64url": lambda text: b64url(text.encode()),
    "hex": lambda text: text.encode().hex(),
    "percent": lambda text: quote(text, safe=""),
    "json-string": _escaped,
    "json-unicode": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "slashes": lambda text: text.replace("/", "\\/"),
    "html": lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "one-line": lambda text: text.strip().replace("\n", " "),
    "no-line": lambda text: text.strip().replace("\n", ""),
    "escaped-n": lambda text: text.strip().replace("\n", "\\n"),
    "escaped-nn": lambda text: text.strip().replace("\n", "\\\\n"),
    "indent": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "tabs": lambda text: "".join(f"\t{line}\n" for line in text.splitlines()),
    "quoted-lines": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "numbered": lambda text: "".join(
        f"{n:>6}\t{line}\n" for n, line in enumerate(text.splitlines(), 1)
    ),
    "joined-strings": lambda text: " +\n  ".join(f'"{line}\\n"' for line in text.splitlines()),
}
"""How one text is written in another. `numbered` is how tools of coding agents show a file."""


def wrapped(text: str, steps: Sequence[str]) -> str:
    """Apply wrappings, one after the other.

    Raises: BadRecipe.
    """
    for step in steps:
        if "{text}" in step:
            text = step.replace("{text}", text)
        elif step in WRAPPINGS:
            text = WRAPPINGS[step](text)
        else:
            raise BadRecipe(f"no wrapping {step!r}")
    return text


def filled(text: str, values: Mapping[str, str]) -> str:
    """Put values into a text in place of `{name}`.

    `{basic}` is base64 of `user:value`, `{value|WRAPPING}` a wrapped value, and `{-}` nothing: it separates what a secret scanner
    would recognise.
    """

    def put(found: re.Match[str]) -> str:
        name, _, how = found[1].partition("|")
        if name == "basic":
            return base64.b64encode(f"user:{values['value']}".encode()).decode()
        if name not in values:
            return found[0]
        return wrapped(values[name], how.split("|")) if how else values[name]

    return re.sub(r"\{([a-z_0-9]+(?:\|[a-z0-9-]+)*)\}", put, text.replace("{-}", ""))


def change(value: str) -> str:
    """Change a value as little as can be: its last letter or digit becomes the next one of its kind."""
    for place in range(len(value) - 1, -1, -1):
        for part in (LOWER, UPPER, DIGITS):
            if value[place] in part:
                other = part[(part.index(value[place]) + 1) % len(part)]
                return value[:place] + other + value[place + 1 :]
    return value + "a"
