"""Reading a configuration: a YAML file, and flags of a command laid over it.

Every fault is reported at once, in file order, with its place. What a text means is `config/parse_values.py`,
where a value stands is `config/document.py`, and the keys are declared in `config/schema.py` and `config/sections/`;
here are the flags, and the rules between sections.

Relative paths in a file are relative to the file's folder, so that a service and a person in another
folder mean the same store; in flags they are relative to the working folder, as on any command line.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .contradictions import Said, find_contradictions, find_hidden
from .document import MAX_BYTES, Faults, Fields, Value, parse_document
from .errors import ConfigError, Fault
from .key_declarations import find_places, keys_of, read_section, show_form
from .parse_values import is_loopback, parse_new_run_name, parse_version, show
from .schema import (
    CONFIG_VERSION,
    KEY_VARIABLE,
    Classes,
    Config,
    ContractRule,
    EffectRule,
    LiveRule,
    Playback,
    ReadRule,
    Secrets,
)
from .value_types import Mode

FLAGS = {
    "mode": ("mode",),
    "listen": ("listen",),
    "store": ("store",),
    "run": ("runs.default", "playback.run"),
    "ca_dir": ("ca_dir",),
    "upstream_ca": ("upstream_ca",),
    "allow_model_drift": ("playback.allow_model_drift",),
    "sandbox": ("sandbox.replay",),
    "capture": ("sandbox.record",),
    "sandbox_files": ("sandbox.files",),
    "determinism": ("determinism",),
    "sleeps": ("playback.sleeps",),
    "strict": ("runs.strict",),
    "late": ("playback.late",),
    "compare": ("playback.compare",),
    "files": ("files.replay",),
    "save_files": ("files.save",),
    "transaction": ("files.transaction",),
    "keep_writes": ("files.keep_writes",),
}
"""What `override` takes, and the keys that each lies over; the flag of `ca_dir` is `--ca-dir`."""
_FLAG_OF = {"runs": "run"}
"""By top-level key the flag that lies over what is checked of it, where that is named otherwise."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that make a request a read where no table of classes says otherwise."""


def load(path: Path) -> Config:
    """Read a configuration file.

    Raises: ConfigError with every fault; one without line and column where the file cannot be read.
    """
    try:
        data = read(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error, FIRST_FILE) from error
    return decode(data, path)


def loads(text: str, name: str = "<string>", base: Path | None = None) -> Config:
    """Read a configuration from a text.

    name: of the text, for the places of faults.
    base: folder that relative paths start from; None leaves them to the working folder.
    Raises: ConfigError with every fault.
    """
    # In UTF-8 a text has at least as many bytes as characters: the longest are refused unencoded.
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise _too_long(name)
    faults = Faults(name, base)
    faults.show_form = _show_form
    faults.find_places = _find_places
    value = parse_document(text, faults)
    default = Config()
    config = default if base is None else replace(default, store=base / default.store)
    if value is not None:
        _check_version(value, name)
        config = read_section(Config, value)
        for key, wrong in _between_keys(config):
            if (at := value.peek(key, faults)) is not None:
                at.fault(wrong)
        faults.raise_any()
        _check_contradictions(value, config)
        faults.raise_any()
    return config


def _show_form(path: str) -> str:
    return show_form(Config, path) if path else "mode: record"


def _find_places(name: str) -> list[str]:
    """Find the sections to which a key belongs that is named as there, or as the flag over it."""
    of_flag = [key.rpartition(".")[0] for key in FLAGS.get(name, ()) if key.endswith(f".{name}")]
    return list(dict.fromkeys([*of_flag, *find_places(Config, name)]))


def override(config: Config, flags: Mapping[str, object]) -> Config:
    """Lay the flags of a command over a configuration.

    flags: by the names in `FLAGS`, as text, or None where not given; of one that may be given several times
        a sequence of texts. `run` names both the run that is recorded and the one that is played.
    Raises: ConfigError, whose places are flags; ValueError on a name that is no flag.
    """
    given = {
        name: tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
        for name, value in flags.items()
        if value is not None
    }
    if unknown := given.keys() - set(FLAGS):
        raise ValueError(f"no such flags: {sorted(unknown)}")
    faults: list[Fault] = []
    for name in FLAGS:
        if given.get(name):
            try:
                for key in FLAGS[name]:
                    config = _set(config, key, given[name])
            except ValueError as error:
                faults.append(Fault(_flag(name), "", str(error)))
    for key, text in _between_keys(config):
        flag = _FLAG_OF.get(key, key)
        is_flag = flag in given
        faults.append(
            Fault(_flag(flag) if is_flag else "configuration", "" if is_flag else key, text)
        )
    if faults:
        raise ConfigError(tuple(faults))
    return config


def read(path: Path) -> bytes:
    """Read a file's bytes, one more than is allowed at most.

    Raises: OSError; ValueError on a path that cannot be one.
    """
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def decode(data: bytes, path: Path) -> Config:
    """Read a configuration from the bytes of a file.

    Raises: ConfigError with every fault.
    """
    if len(data) > MAX_BYTES:
        raise _too_long(str(path))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"not UTF-8: byte 0x{data[error.start]:02x} on line {line}; save the file as UTF-8"
        raise ConfigError((Fault(str(path), "", wrong),)) from None
    return loads(text, str(path), path.parent)


def says_mode(text: str) -> bool:
    """Say whether a valid configuration names its mode."""
    faults = Faults("")
    value = parse_document(text, faults)
    return value is not None and value.peek("mode", faults) is not None


FIRST_FILE = "`playhead init -c FILE` writes a first one"
"""What to do about a configuration that is not there."""


def unreadable(path: Path, error: Exception, advice: str = "") -> ConfigError:
    """Say why a file cannot be read.

    advice: what to do where there is none.
    """
    match error:
        case FileNotFoundError():
            wrong = f"no such file{advice and f'; {advice}'}"
        case IsADirectoryError():
            wrong = "a folder; expected a YAML file"
        case OSError():
            wrong = f"cannot be read: {error.strerror or error}"
        case _:
            wrong = f"cannot be read: {error}"
    return ConfigError((Fault(str(path), "", wrong),))


def _too_long(name: str) -> ConfigError:
    wrong = f"longer than {MAX_BYTES} bytes, which is more than a configuration may be"
    return ConfigError((Fault(name, "", wrong),))


def _check_version(value: Value, name: str) -> None:
    """Refuse a file of another version, and say nothing of its other keys: they may mean something else.

    Raises: ConfigError.
    """
    faults = Faults(name)
    version = value.peek("version", faults)
    if version is not None:
        version.parsed(parse_version, CONFIG_VERSION)
        faults.raise_any()


def _flag(name: str) -> str:
    """Give a flag as it is typed: `record` and `replay` have one of the same name, over different keys."""
    return f"--{'sandbox' if name == 'capture' else name.replace('_', '-')}"


def _set[T](section: T, way: str, texts: tuple[str, ...]) -> T:
    """Give a section with another value of one key. Raises: ValueError."""
    name, _, rest = way.partition(".")
    at, key = keys_of(type(section))[name]
    if rest:
        value = _set(getattr(section, at), rest, texts)
    else:
        value = tuple(map(key.parse, texts)) if key.default == "[]" else key.parse(texts[0])
    return replace(section, **{at: value})  # type: ignore[type-var]  # sections are dataclasses


def _between_keys(config: Config) -> list[tuple[str, str]]:
    """Give what is wrong between keys, as top-level key and text."""
    wrong = []
    if config.secrets is Secrets.ENCRYPTED and (text := _find_key_problem(config)):
        wrong.append(("secrets", text))
    if not config.runs.tokens and not is_loopback(config.listen.host):
        text = (
            f"{config.listen} can be reached from other machines and runs.tokens is empty, which"
            " accepts any token, on loopback only; give runs.tokens, as {RUN: TOKEN}, or listen on 127.0.0.1"
        )
        wrong.append(("listen", text))
    if config.mode is Mode.RECORD:  # else it may name a tape
        try:
            parse_new_run_name(config.runs.default)
        except ValueError as error:
            wrong.append(("runs", str(error)))
    classes = [live for live in (config.playback.inference, config.playback.reads) if live]
    count = len(config.live) + sum(len(live.hosts) for live in classes)
    if count > config.live_max:
        text = (
            f"{count} live rules (hosts of live classes count too), but live_max is"
            f" {config.live_max}; remove some, or raise live_max"
        )
        wrong.append(("live" if config.live else "playback", text))
    for index, rule in enumerate(config.reads):
        # What is no read by its method is one by its place alone.
        if rule.match.methods and not rule.match.methods & _READS and not config.classes.read:
            text = (
                f"entry {index}, {show(rule.match.text)}, matches no read: only GET, HEAD and OPTIONS are, and"
                " requests that classes.read names; effects and model calls are never answered twice"
            )
            wrong.append(("reads", text))
    return wrong


def _find_key_problem(config: Config) -> str:
    """Say why secrets cannot be kept: the store's key has to come from outside the store. Empty where it does."""
    if os.environ.get(KEY_VARIABLE):
        return ""
    file = config.encrypt.key_file
    if file is None:
        return (
            f"encrypted needs a key from outside the store; give encrypt.key_file, or {KEY_VARIABLE} in the"
            " environment, or secrets: replaced"
        )
    store = config.store.resolve()
    if file.resolve().is_relative_to(store):
        return (
            f"encrypted needs a key from outside the store, but encrypt.key_file, {show(str(file))}, lies in the"
            f" store's folder, {show(str(store))}; move it elsewhere, or give secrets: replaced"
        )
    return ""


_Rule = LiveRule | ReadRule | EffectRule | ContractRule


def _check_contradictions(document: Value, config: Config) -> None:
    """Note rules of which one can never have its say; for a document that is sound otherwise."""
    fields = document.fields(*keys_of(Config))
    said: list[tuple[Value, Said]] = []
    listed: tuple[tuple[str, Sequence[_Rule]], ...] = (
        ("live", config.live),
        ("reads", config.reads),
        ("effects", config.effects),
        ("contracts", config.contracts),
    )
    for key, rules in listed:
        for value, rule in zip(fields.items(key), rules, strict=True):
            said += [
                (value, Said(rule.match, what, told, value.line))
                for what, told in _sayings(key, rule).items()
            ]
    classes = fields.given.get("classes")
    if classes is not None and classes.is_mapping:
        given = classes.fields(*keys_of(Classes))
        for name in given.given:
            matches = getattr(config.classes, name)
            for value, match in zip(given.items(name), matches, strict=True):
                said.append((value, Said(match, f"classes.{name}", "", value.line)))
    for index, text in find_contradictions([one for _, one in said]):
        said[index][0].fault(text)
    if config.playback.effects == "refuse":
        _check_idle_answers(fields, config)
    faults = fields.items("faults")
    for index, first in find_hidden(config.faults):
        faults[index].fault(
            f"never hits: line {faults[first].line} hits all of the same requests first; give that one"
            " nth, every or share, or remove one of the two"
        )


def _check_idle_answers(fields: Fields, config: Config) -> None:
    """Note answers that are never given, because effects that are not on the tape are refused."""
    if any(rule.on_miss == "stub" for rule in config.effects):
        return  # which may speak of the same requests
    line = fields.given["playback"].fields(*keys_of(Playback)).given["effects"].line
    for value, rule in zip(fields.items("effects"), config.effects, strict=True):
        if rule.answer is not None:
            value.fault(
                f"contradicts line {line}, playback.effects: refuse, under which its answer is never given; add"
                " on_miss: stub, or remove one of the two"
            )


def _sayings(key: str, rule: _Rule) -> dict[str, object]:
    """Give what a rule says, by the name of its key."""
    if isinstance(rule, EffectRule):
        says = {"answer": rule.answer, "gate": rule.gate, "on_miss": rule.on_miss}
        return {f"{key}.{name}": told for name, told in says.items() if told}
    if isinstance(rule, ContractRule):
        schemas = {"request": rule.request, "response": rule.response}
        return {
            f"{key}.{name}": (told, rule.on_violation) for name, told in schemas.items() if told
        }
    if isinstance(rule, ReadRule):
        return {f"{key}.repeat": rule.repeat}
    return {key: rule.reason}
