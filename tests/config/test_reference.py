"""The shipped configuration and its documentation say all there is."""

import re
from dataclasses import fields, is_dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from playhead.config import Config, loads, schema

ROOT = Path(__file__).parents[2]
REFERENCE = files("playhead.config").joinpath("playhead.yaml").read_text("utf-8")
DOCUMENTATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")

# Fields of the schema that go by another name in the file.
NAMES = {
    "Listen.host": "HOST",
    "Listen.port": "PORT",
    "Runs.grace_s": "grace",
    "Retention.hot_s": "hot",
    "Retention.keep_s": "keep",
    "Answer.body": "base64",
    "Sandbox.pipe_search_s": "pipe_search",
    "Gate.deadline_s": "deadline",
    "FaultRule.delay_s": "delay",
    "FaultRule.retry_after_s": "retry_after",
    "Sink.patience_s": "patience",
}
NAMED = [
    NAMES.get(f"{kind.__name__}.{field.name}", field.name)
    for kind in vars(schema).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == schema.__name__
    for field in fields(kind)
]
# Words of the file that are no field, or share one.
NAMED += ["live", "json", "text", "gate", "allow_model_drift", *schema.Mode]


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
        "sandbox",
        "determinism",
        "libc_preload",
    )
    for field in fields(Config):
        same = getattr(config, field.name) == getattr(default, field.name)
        assert same is (field.name in (*unset, "encrypt", "fault_seed")), field.name


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"gate"}))
def test_the_reference_names_every_key(name: str) -> None:
    """Each field of the schema stands in the file."""
    assert re.search(rf"\b{name}\b", REFERENCE)


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_the_documentation_names_every_key(name: str) -> None:
    """Each field of the schema stands in the page, as code."""
    code = re.findall(r"`[^`\n]+`|^```\w*$.*?^```$", DOCUMENTATION, re.MULTILINE | re.DOTALL)
    assert any(re.search(rf"\b{name}\b", part) for part in code)


@pytest.mark.parametrize(
    "example", re.findall(r"^```yaml\n(.*?)^```", DOCUMENTATION, re.MULTILINE | re.DOTALL)
)
def test_the_examples_of_the_documentation_load(example: str) -> None:
    """A person can copy each."""
    assert loads(example) != Config()
