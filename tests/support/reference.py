"""Write what is made from the declared keys of the configuration, and from the list of exit codes: `just reference`.

That is the table of exit codes in `docs/commands.md`, the man page `proxy/command_line/playhead.1`, `config/playhead.yaml`,
`config/playhead.schema.json`, and the tables of `docs/configuration.md`, `docs/configuration-rules.md` and `docs/configuration-secrets.md`: each line
`<!-- keys: NAME ... -->` there is followed by the table of these keys, where `runs.*` is all keys of a section and
`effects[].*` all keys of one entry. `<!-- block: NAME ... -->` is followed by the same as a block of YAML.
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead.config import Config
from playhead.config.key_declarations import Key, keys_of
from playhead.tape.exit_codes import ExitCode

from .man_page import make_man_page

ROOT = Path(__file__).parents[2]
_WIDTH = 110
_HEAD = """\
# The reference of Playhead's configuration: every key, with its default. Made by `just reference`.
#
# Copy what you change; a key that is left out has the default shown here, and an empty file is a
# whole configuration. The file is read again when it changes. Relative paths start from the folder
# of this file. Durations are 500ms, 10s, 5m, 72h, 7d, or a plain number of seconds.
# Everything is explained in docs/configuration.md.
"""
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SEE = re.compile(r"([Ss]ee) \[[^\]]+\]\(([\w-]+\.md)[^)]*\)")
_MARK = re.compile(r"^(<!-- keys: (.+) -->\n)(?:\|.*\n)*", re.MULTILINE)
_BLOCK = re.compile(r"^(<!-- block: (.+) -->\n)(?:```\n(?:(?!```).*\n)*```\n)?", re.MULTILINE)


def yaml() -> str:
    """Give the shipped configuration."""
    return _HEAD + "".join(
        f"\n{''.join(f'{line}\n' for line in _lines(name, key, 0))}"
        for name, (_, key) in keys_of(Config).items()
    )


def _plain(sentence: str) -> str:
    """Give a sentence without its links; a page to see is named."""
    return _LINK.sub(r"\1", _SEE.sub(r"\1 docs/\2", sentence))


def _lines(name: str, key: Key, indent: int) -> Iterator[str]:
    pad = " " * indent
    if key.sentence:
        yield from (f"{pad}# {line}" for line in textwrap.wrap(_plain(key.sentence), _WIDTH))
    if key.default == "{}" and key.section is not None and not key.example:
        yield f"{pad}{name}:"
        for inner, (_, below) in keys_of(key.section).items():
            yield from _lines(inner, below, indent + 2)
    else:
        yield f"{pad}{name}: {key.default}"
    yield from (f"{pad}  # {line}" for line in key.example.splitlines())


def schema() -> str:
    """Give the JSON Schema of the configuration, one key a line."""
    sections = ",\n".join(f'"{kind.__name__}": {_shape(kind)}' for kind in _sections(Config))
    return f"""{{
"$schema": "https://json-schema.org/draft/2020-12/schema",
"title": "Configuration of Playhead",
"$ref": "#/$defs/Config",
"$defs": {{
{sections}
}}
}}
"""


def _sections(section: type) -> dict[type, None]:
    """Give a section and those inside, each once."""
    found = {section: None}
    for _, key in keys_of(section).values():
        if key.section is not None:
            found |= _sections(key.section)
    return found


def _shape(section: type) -> str:
    keys = {name: key for name, (_, key) in keys_of(section).items()}
    lines = ",\n".join(
        f'  "{name}": {json.dumps({**key.shape, "description": _plain(key.sentence)})}'
        for name, key in keys.items()
    )
    needed = json.dumps([name for name, key in keys.items() if key.required])
    return (
        f'{{"type": "object", "additionalProperties": false, "required": {needed}, "properties": {{'
        f"\n{lines}\n}}}}"
    )


def page(text: str) -> str:
    """Give a page with its tables as they should be."""
    text = _MARK.sub(lambda mark: mark[1] + _table(mark[2].split()), text)
    return _BLOCK.sub(lambda mark: f"{mark[1]}```\n{_block(mark[2].split())}```\n", text)


def _table(names: list[str]) -> str:
    rows = "".join(
        f"| `{path.rpartition('[].')[2]}` | {f'`{key.default}` ' if key.default else ''}| {key.sentence} |\n"
        for name in names
        for path, key in _find(name)
    )
    return f"| key | default | |\n|---|---|---|\n{rows}"


def _block(names: list[str]) -> str:
    """Give keys as YAML: each with its default, and its sentence behind it, or above it if that is too long."""
    lines: list[str] = []
    section = ""
    for path, key in (found for name in names for found in _find(name)):
        above, _, name = path.rpartition(".")
        entry = above.endswith("[]")
        first = above != section
        if first and above:
            lines.append(f"{above.removesuffix('[]').rpartition('.')[2]}:")
        section = above
        pad = "" if not above else "  - " if entry and first else "    " if entry else "  "
        shown = f"{pad}{name}: {key.default}".rstrip()
        sentence = _plain(key.sentence).replace("`", "").removesuffix(".")
        if len(shown) + len(sentence) < _WIDTH - 20 or (entry and first):
            lines.append(f"{shown:<27} # {sentence}")
        else:
            pad = " " * len(pad)
            lines += [f"{pad}# {line}" for line in textwrap.wrap(sentence, _WIDTH)] + [shown]
    return "".join(f"{line}\n" for line in lines)


def _find(name: str) -> Iterator[tuple[str, Key]]:
    """Find the keys that a name of a table stands for."""
    *way, last = name.split(".")
    section: type | None = Config
    for step in way:
        assert section is not None
        section = keys_of(section)[step.removesuffix("[]")][1].section
    assert section is not None, name
    for found, (_, key) in keys_of(section).items():
        if last in ("*", found):
            yield ".".join((*way, found)), key


def every_key(section: type = Config) -> Iterator[str]:
    """Give the name of each key there is, in any section."""
    for name, (_, key) in keys_of(section).items():
        yield name
        if key.section is not None:
            yield from every_key(key.section)


_CODES = re.compile(r"^(<!-- exit codes -->\n)(?:\|.*\n)*", re.MULTILINE)


def commands(text: str) -> str:
    """Give the page of the commands with its table of exit codes."""
    rows = "".join(
        f"| {code} | {of} | {meaning} |\n" for code in ExitCode for of, meaning in code.meanings
    )
    return _CODES.sub(
        lambda mark: f"{mark[1]}| code | from | meaning |\n|---|---|---|\n{rows}", text
    )


FILES: dict[Path, Callable[[str], str]] = {
    ROOT / "config" / "playhead.yaml": lambda text: yaml(),
    ROOT / "config" / "playhead.schema.json": lambda text: schema(),
    ROOT / "docs" / "configuration.md": page,
    ROOT / "docs" / "configuration-rules.md": page,
    ROOT / "docs" / "configuration-secrets.md": page,
    ROOT / "docs" / "commands.md": commands,
    ROOT / "proxy" / "command_line" / "playhead.1": lambda text: make_man_page(),
}
"""What each file should be, by what it is."""


def main() -> None:
    """Write the files that are not up to date."""
    for path, make in FILES.items():
        path.write_text(make(path.read_text("utf-8") if path.exists() else ""), "utf-8")


if __name__ == "__main__":
    main()
