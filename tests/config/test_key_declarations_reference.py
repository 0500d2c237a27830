"""The shipped configuration and its documentation say all there is."""

import json
import re
from dataclasses import fields
from pathlib import Path

import jsonschema_rs
import pytest

from playhead.config import Config, loads
from playhead.config.document import Faults, parse_document
from playhead.tests.support import reference

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "config" / "playhead.yaml").read_text("utf-8")
PAGES = (
    *("configuration", "configuration-rules", "configuration-secrets"),
    *("match-patterns", "classes", "model-drift"),
)
DOCUMENTATION = "\n".join((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in PAGES)
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", DOCUMENTATION, re.MULTILINE | re.DOTALL)
SCHEMA = jsonschema_rs.Draft202012Validator(
    json.loads((ROOT / "config" / "playhead.schema.json").read_text("utf-8"))
)


@pytest.mark.parametrize("path", reference.FILES, ids=lambda path: path.name)
def test_what_is_made_from_the_keys_is_up_to_date(path: Path) -> None:
    """Each file is what `just reference` would write."""
    text = path.read_text("utf-8")
    assert reference.FILES[path](text) == text, "run `just reference`"


def _with_examples(text: str) -> str:
    """Put each example, a comment that stands deeper than the key above it, in the key's place."""
    placeholder = r"^(( *)\w+:) (?:\[\]|\{\}|tape)\n((?:\2 +#.*\n)+)"

    def put(found: re.Match[str]) -> str:
        return f"{found[1]}\n{re.sub('^( +)# ', r'\1', found[3], flags=re.MULTILINE)}"

    return re.sub(placeholder, put, text, flags=re.MULTILINE)


def test_the_reference_holds_every_default() -> None:
    """Loading it is the same as loading nothing."""
    assert loads(REFERENCE, base=Path("/x")) == loads("", base=Path("/x"))
    assert loads(REFERENCE) == Config()


def test_the_examples_of_the_reference_load() -> None:
    """Uncommented, each stands in its key and is read."""
    config, default = loads(_with_examples(REFERENCE)), Config()
    assert config.playback.inference
    assert any(rule.answer for rule in config.effects)
    assert any(rule.gate for rule in config.effects)
    unset = (
        "version",
        "mode",
        "listen",
        "store",
        "durability",
        "on_full",
        "ballast_mib",
        "ca_dir",
        "upstream_ca",
        "upstream_encoding",
        "live_max",
        "model_contracts",
        "profiles",  # a file that is not there
        "secrets",
        "sink",
        "files",
        "determinism",
        "libc_preload",
    )
    for field in fields(Config):
        same = getattr(config, field.name) == getattr(default, field.name)
        assert same is (field.name in (*unset, "encrypt", "fault_seed")), field.name


@pytest.mark.parametrize("name", sorted(set(reference.every_key())))
def test_the_documentation_names_every_key(name: str) -> None:
    """Each key is in one of the pages, as code."""
    code = re.findall(r"`[^`\n]+`|^```\w*$.*?^```$", DOCUMENTATION, re.MULTILINE | re.DOTALL)
    assert any(re.search(rf"\b{name}\b", part) for part in code)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_documentation_load(example: str) -> None:
    """A person can copy each."""
    assert loads(example) != Config()


def _as_json(text: str) -> object:
    """Give a text as an editor reads it, by YAML 1.2."""
    value = parse_document(text, Faults("f"))
    assert value is not None
    return json.loads(value.json())


@pytest.mark.parametrize("text", [REFERENCE, _with_examples(REFERENCE), *EXAMPLES])
def test_the_schema_takes_what_loads(text: str) -> None:
    """An editor that checks by the JSON Schema finds nothing wrong."""
    assert [error.message for error in SCHEMA.iter_errors(_as_json(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "mode: recrod",
        "mdoe: record",
        "live_max: 1001",
        "runs: {strict: maybe}",
        "live: [{match: 'https://a'}]",
        "control: {tls: {cert: a}}",
    ],
)
def test_the_schema_refuses_what_does_not_load(text: str) -> None:
    """A word, a key or a number that is none, and what is missing."""
    assert not SCHEMA.is_valid(_as_json(text))
