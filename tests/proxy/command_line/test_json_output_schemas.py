"""What `--json` prints has a schema with a version, which `playhead schema COMMAND` prints."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from playhead.proxy.cli import cli, main
from playhead.proxy.command_line.json_output_schemas import SCHEMAS, make_schema
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.recordings import ask, record_run

WITHOUT = {
    # They run commands or send requests: their documents are in the pages of these commands.
    *("ask", "bisect", "branch", "explore", "resume", "sweep", "beside", "doctor"),
    # They show what agents said, whose form is that of others; docs/exchange.md, docs/time-travel.md and their like.
    *("blame", "cache", "context", "cost", "destinations", "diff", "files", "history", "rewind", "state"),
    # Documents of rules and approvals, in the pages of these.
    *("gates", "learn", "policy", "profiles", "redact", "reindex"),
    # The same document as `receipt`.
    *("record", "replay"),
}  # fmt: skip
"""Commands whose JSON has no schema yet. Take them out, and add none."""


def test_every_command_with_json_has_a_schema_or_is_named() -> None:
    """Nor is there a schema of a command without."""
    with_json = {
        str(name)
        for name, command in cli.commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert set(SCHEMAS) | WITHOUT == with_json
    assert not set(SCHEMAS) & WITHOUT


MODEL = "https://api.openai.com/v1/chat/completions"
CALL = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
SAID = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop", "index": 0}
ANSWER = {"object": "chat.completion", "model": "m", "choices": [SAID]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("schemas")
    with Store.open(made / "store") as opened:
        for name in ("mine", "other"):
            record_run(opened, name, [ask(CALL, ANSWER, MODEL)])
        pay = ask(b"x=1", url="https://api.test/v1/pay")
        record_run(opened, "paid", [pay], kind=RequestClass.EFFECT)
    (made / "playhead.yaml").write_text("store: store\nretention: {archive: kept}\n")
    return made


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("receipt", "mine"),
    ("effects", "paid"),
    ("show", "paid", "1"),
    ("show", "paid", "--raw"),
    ("show", "mine"),
    ("receipt", "paid"),
    ("runs", "--grep", "hello"),
    ("contracts", "mine"),
    ("note", "mine", "a note"),
    ("label", "mine", "ok"),
    ("verify",),
    ("verify", "--secrets"),
    ("similar", "mine"),
    ("export", "mine", "--tape", "mine.tape"),
    ("gc",),
    ("archive", "--dry-run", "mine"),
    ("import", "mine.tape"),
    ("erase", "--yes", "other"),
)


def test_what_is_printed_fits_its_schema(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each document, with no key that the schema does not know."""
    monkeypatch.chdir(folder)
    seen = set()
    for name, *words in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--json", *words])
        said = capfd.readouterr()
        assert said.out, (name, said.err)
        document = json.loads(said.out)
        strict = _closed(make_schema(name))
        problems = [
            f"{one.instance_path}: {one.message}"
            for one in jsonschema_rs.Draft202012Validator(strict).iter_errors(document)
        ]
        assert problems == [], (name, said.out[:500])
        seen.add(name)
    assert seen == set(SCHEMAS)


def _closed(schema: Any) -> Any:
    """Let no object have a key that is not described, where all are: a description of a row may be of some."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(value) for key, value in schema.items()}
    return {**made, "additionalProperties": False} if "required" in made else made


@pytest.mark.parametrize("name", ["receipt", "effects", "contracts"])
def test_each_key_is_explained(name: str) -> None:
    """By a sentence beside its type; only keys that are printed are."""
    made = make_schema(name)
    rows = made.get("items", made)
    unexplained = {key for key, one in rows["properties"].items() if not one.get("description")}
    assert unexplained == set()
    assert set(rows["properties"]) - {"body_file"} == {key.rstrip("?") for key in _shape(name)}


def _shape(name: str) -> Any:
    shape = SCHEMAS[name][1]
    return shape[0] if isinstance(shape, list) else shape


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_printed_with_its_version(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As a JSON Schema that validators take; further keys are allowed, since they break nobody's program."""
    with pytest.raises(SystemExit) as ended:
        main(["schema", name])
    assert ended.value.code == 0
    schema = json.loads(capfd.readouterr().out)
    version = schema["$id"].rpartition(":")[2]
    assert schema["$id"] == f"urn:playhead:json:{name}:{version}"
    assert int(version) >= 1
    assert "additionalProperties" not in json.dumps(schema)
    jsonschema_rs.meta.validate(schema)


def test_schemas_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    """With their versions."""
    with pytest.raises(SystemExit) as ended:
        main(["schema"])
    assert ended.value.code == 0
    listed = dict(line.split() for line in capfd.readouterr().out.splitlines())
    assert listed == {name: str(version) for name, (version, _) in SCHEMAS.items()}


def test_command_without_a_schema_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    """With those that have one."""
    with pytest.raises(SystemExit) as ended:
        main(["schema", "state"])
    assert ended.value.code == 2
    assert "'runs'" in capfd.readouterr().err
