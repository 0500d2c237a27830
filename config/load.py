"""Reading a configuration: a YAML file, and flags of a command laid over it.

Every fault is reported at once, in file order, with its place. What a text means is `config/values.py`,
where a value stands is `config/document.py`; here stand the keys, and the rules between keys.

Relative paths in a file are relative to the file's folder, so that a service and a person in another
folder mean the same store; in flags they are relative to the working folder, as on any command line.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from .archive_url import parse_archive
from .contract_schema_file import read_schema
from .contradictions import Said, find_contradictions, find_hidden
from .document import MAX_BYTES, Entry, Faults, Fields, Value, parse_document
from .errors import ConfigError, Fault
from .match_pattern import Match
from .profiles.profile_file import read_profile
from .profiles.shipped import shipped_profiles
from .safe_json_schema import BadSchema, compile_schema
from .schema import (
    CONFIG_VERSION,
    KEY_VARIABLE,
    Answer,
    Classes,
    ClassLive,
    Config,
    ContractRule,
    Control,
    Durability,
    EffectRule,
    Encrypt,
    FaultRule,
    Gate,
    IgnoreRule,
    Inject,
    KeepRule,
    Limits,
    LiveRule,
    Mode,
    ModelDrift,
    OnFull,
    OnViolation,
    Playback,
    ProfileFile,
    ReadRule,
    RedactRule,
    Retention,
    Runs,
    Sandbox,
    Secrets,
    Sink,
    Tls,
    UpstreamEncoding,
)
from .values import (
    LABEL_RULE,
    PERSONAL_KINDS,
    check_json_path,
    check_regex,
    check_secret_regex,
    choice,
    integer,
    is_label,
    is_loopback,
    parse_base64,
    parse_control_listen,
    parse_duration,
    parse_fault_name,
    parse_header_name,
    parse_header_value,
    parse_host,
    parse_image,
    parse_keep,
    parse_listen,
    parse_live_match,
    parse_mode,
    parse_model_drift,
    parse_pace,
    parse_parameter,
    parse_pattern,
    parse_personal_kind,
    parse_place,
    parse_reason,
    parse_run_name,
    parse_secret_format,
    parse_share,
    parse_sink_url,
    parse_token,
    parse_usd,
    parse_version,
    show,
    url_host,
)

FLAGS = (
    *("mode", "listen", "store", "run", "ca_dir", "upstream_ca", "allow_model_drift"),
    *("sandbox", "capture", "sandbox_files", "determinism", "sleeps", "strict", "late", "compare"),
)
"""What `override` takes; the flag of `ca_dir` is `--ca-dir`. `allow_model_drift` takes several texts."""

_NO_MATCH = Match("", frozenset(), "", "", None, "")
"""Stands in for a pattern at fault, so that reading goes on; never in a Config that is returned."""
_NO_PROFILE = ProfileFile("", "")
_NO_DRIFT = ModelDrift("", "")
"""The same for one of these."""
_PLAYBACK = tuple(field.name for field in dataclasses.fields(Playback))
_MISSING_REASON = "missing; expected why this may go live, as 'metrics emit'"
_MISSING_MATCH = "missing; expected a match pattern, as 'POST https://api.example.com/v1/*'"
_CLASS_LIVE = "expected tape or {live: {hosts: [api.example.com], reason: why}}"
_COMPUTED = ("content-length", "transfer-encoding")
"""Header fields of an answer that follow from its body."""
_OF_CONNECTION = ("connection", "keep-alive", "proxy-connection", "upgrade")
"""Those that speak of the connection: RFC 9110 section 7.6.1, and forbidden by RFC 9113 section 8.2.2."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that make a request a read where no table of classes says otherwise."""
_NO_CONTENT = (204, 205, 304)
_CONTAINMENT = choice("contained", "strict", "none", "docker")
_DETERMINISM = choice("off", "seed", "full")
_SLEEPS = choice("real", "short")
_LATE = choice("held", "served")
_MOST = 999_999_999
"""Of what is counted."""


def load(path: Path) -> Config:
    """Read a configuration file.

    Raises: ConfigError with every fault; one without line and column where the file cannot be read.
    """
    try:
        data = read(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
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
    faults = Faults(name)
    value = parse_document(text, faults)
    config = Config(store=_based(base, Config().store))
    if value is not None:
        _check_version(value, name)
        config = _config(value, base)
        faults.raise_any()
        _check_contradictions(value, config)
        faults.raise_any()
    return config


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
                config = _with_flag(config, name, *given[name])
            except ValueError as error:
                faults.append(Fault(_flag(name), "", str(error)))
    for key, text in _between_keys(config):
        is_flag = key in given
        faults.append(
            Fault(_flag(key) if is_flag else "configuration", "" if is_flag else key, text)
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


def unreadable(path: Path, error: Exception) -> ConfigError:
    """Say why a file cannot be read."""
    match error:
        case FileNotFoundError():
            wrong = "no such file"
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


def _based(base: Path | None, path: Path) -> Path:
    return path if base is None else base / path


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _with_flag(config: Config, name: str, text: str, *more: str) -> Config:
    match name:
        case "allow_model_drift":
            allowed = tuple(map(parse_model_drift, (text, *more)))
            return replace(config, playback=replace(config.playback, allow_model_drift=allowed))
        case "mode":
            return replace(config, mode=parse_mode(text))
        case "listen":
            return replace(config, listen=parse_listen(text))
        case "run":
            run = parse_run_name(text)
            runs = replace(config.runs, default=run)
            return replace(config, runs=runs, playback=replace(config.playback, run=run))
        case "store":
            return replace(config, store=parse_place(text))
        case "sandbox":
            return replace(config, sandbox=replace(config.sandbox, replay=_CONTAINMENT(text)))
        case "capture":
            return replace(config, sandbox=replace(config.sandbox, record=_CONTAINMENT(text)))
        case "sandbox_files":
            return replace(config, sandbox=replace(config.sandbox, files=_is_yes(text)))
        case "strict":
            return replace(config, runs=replace(config.runs, strict=_is_yes(text)))
        case "determinism":
            return replace(config, determinism=_DETERMINISM(text))
        case "sleeps":
            playback = replace(config.playback, sleeps=_SLEEPS(text))
            return replace(config, playback=playback)
        case "compare":
            return replace(config, playback=replace(config.playback, compare=_parse_compare(text)))
        case "late":
            return replace(config, playback=replace(config.playback, late=_LATE(text)))
        case "ca_dir":
            return replace(config, ca_dir=parse_place(text))
        case _:
            return replace(config, upstream_ca=parse_place(text))


def _between_keys(config: Config) -> list[tuple[str, str]]:
    """Give what is wrong between keys, as top-level key and text."""
    wrong = []
    if config.secrets is Secrets.ENCRYPTED and (text := _find_key_problem(config)):
        wrong.append(("secrets", text))
    if not config.runs.tokens and not is_loopback(config.listen.host):
        text = (
            f"{config.listen} can be reached from other machines and runs.tokens is empty, which"
            " accepts any token, on loopback only; give runs.tokens, or listen on 127.0.0.1"
        )
        wrong.append(("listen", text))
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
                " what classes.read names; effects and model calls are never answered twice"
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


def _config(value: Value, base: Path | None) -> Config:
    fields = value.fields(
        *("version", "mode", "listen", "store", "durability", "on_full", "ballast_mib"),
        *("ca_dir", "upstream_ca", "upstream_encoding", "runs"),
        *(
            "playback",
            "classes",
            "live_max",
            "live",
            "effects",
            "reads",
            "faults",
            "fault_seed",
            "contracts",
            "model_contracts",
            "ignore",
            "profiles",
            "profiles_off",
            "redact",
            "redact_off",
            "secrets",
        ),
        *("limits", "sink", "retention", "encrypt", "control", "sandbox", "determinism"),
        "libc_preload",
    )
    default = Config()

    def place(text: str) -> Path:
        return _based(base, parse_place(text))

    config = Config(
        version=fields.parsed("version", parse_version, default.version),
        mode=fields.parsed("mode", parse_mode, default.mode),
        listen=fields.parsed("listen", parse_listen, default.listen),
        store=fields.parsed("store", place, _based(base, default.store)),
        durability=Durability(
            fields.parsed("durability", choice(*Durability), default.durability.value)
        ),
        on_full=OnFull(fields.parsed("on_full", choice(*OnFull), default.on_full.value)),
        ballast_mib=fields.parsed("ballast_mib", integer(0, 4096), default.ballast_mib),
        ca_dir=fields.optional("ca_dir", place),
        upstream_ca=fields.optional("upstream_ca", place),
        upstream_encoding=fields.section("upstream_encoding", _encoding, default.upstream_encoding),
        runs=fields.section("runs", _runs, default.runs),
        playback=fields.section("playback", _playback, default.playback),
        classes=fields.section("classes", _classes, default.classes),
        live_max=fields.parsed("live_max", integer(0, 1000), default.live_max),
        live=fields.each("live", _live_rule),
        effects=fields.each("effects", _effect_rule),
        reads=fields.each("reads", _read_rule),
        faults=fields.each("faults", _fault_rule),
        fault_seed=fields.parsed("fault_seed", integer(0, _MOST), default.fault_seed),
        contracts=fields.each("contracts", lambda given: _contract_rule(given, base)),
        model_contracts=fields.parsed("model_contracts", _model_violation, default.model_contracts),
        sink=fields.section("sink", lambda given: _sink(given, base), default.sink),
        ignore=fields.each("ignore", _ignore_rule),
        profiles=fields.texts("profiles", lambda text: _read_profile(text, base), _NO_PROFILE),
        profiles_off=fields.texts("profiles_off", _parse_profile, ""),
        redact=fields.section("redact", _redact_rules, ()),
        redact_off=fields.each("redact_off", _keep_rule),
        secrets=Secrets(fields.parsed("secrets", choice(*Secrets), default.secrets.value)),
        limits=fields.section("limits", _limits, default.limits),
        retention=fields.section(
            "retention", lambda given: _retention(given, place), default.retention
        ),
        encrypt=fields.section("encrypt", lambda given: _encrypt(given, place), default.encrypt),
        control=fields.section("control", lambda given: _control(given, place), default.control),
        sandbox=fields.section("sandbox", _sandbox, default.sandbox),
        determinism=fields.optional("determinism", _DETERMINISM),
        libc_preload=fields.parsed("libc_preload", choice("auto", "off"), default.libc_preload),
    )
    for key, text in _between_keys(config):
        fields.given[key].fault(text)
    return config


_Rule = LiveRule | ReadRule | EffectRule | ContractRule


def _check_contradictions(document: Value, config: Config) -> None:
    """Note rules of which one can never have its say; for a document that is sound otherwise."""
    fields = document.fields(*(field.name for field in dataclasses.fields(Config)))
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
        given = classes.fields(*(field.name for field in dataclasses.fields(Classes)))
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
    line = fields.given["playback"].fields(*_PLAYBACK).given["effects"].line
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


def _encoding(value: Value) -> UpstreamEncoding:
    fields = value.fields("inference", "reads", "effects")
    default = UpstreamEncoding()

    def identity(text: str) -> bool:
        return choice("identity", "as-asked")(text) == "identity"

    return UpstreamEncoding(
        inference=fields.parsed("inference", identity, default.inference),
        reads=fields.parsed("reads", identity, default.reads),
        effects=fields.parsed("effects", identity, default.effects),
    )


def _runs(value: Value) -> Runs:
    fields = value.fields("default", "grace", "strict", "tokens")
    default = Runs()
    return Runs(
        default=fields.parsed("default", parse_run_name, default.default),
        grace_s=fields.parsed("grace", parse_duration, default.grace_s),
        strict=fields.parsed("strict", _is_yes, default.strict),
        tokens=fields.section("tokens", _tokens, default.tokens),
    )


def _tokens(value: Value) -> Mapping[str, str]:
    tokens = {}
    for name, key, token in value.entries():
        key.parsed(parse_run_name, "")
        tokens[name] = token.parsed(parse_token, "")
    return tokens


def _playback(value: Value) -> Playback:
    fields = value.fields(*_PLAYBACK)
    default = Playback()
    return Playback(
        run=fields.parsed("run", parse_run_name, default.run),
        inference=fields.section("inference", _class_live, None),
        reads=fields.section("reads", _class_live, None),
        effects=fields.parsed("effects", choice("stub", "refuse"), default.effects),
        pace=fields.parsed("pace", parse_pace, default.pace),
        sleeps=fields.parsed("sleeps", _SLEEPS, default.sleeps),
        allow_model_drift=fields.texts("allow_model_drift", parse_model_drift, _NO_DRIFT),
        compare=fields.parsed("compare", _parse_compare, default.compare),
        late=fields.parsed("late", _LATE, default.late),
        late_wait=fields.parsed("late_wait", parse_duration, default.late_wait),
        order=fields.parsed("order", choice("effects", "strict", "free"), default.order),
    )


def _parse_compare(text: str) -> tuple[str, ...]:
    """Parse words with commas between them; `none` is no word."""
    word = choice("stdout", "files")
    return () if text == "none" else tuple(dict.fromkeys(map(word, text.split(","))))


def _class_live(value: Value) -> ClassLive | None:
    if value.is_mapping:
        live = value.fields("live").given.get("live")
        if live is not None and live.is_mapping:
            return _class_live_rule(live)
    elif value.node.value == "tape":
        return None
    value.fault(_CLASS_LIVE)
    return None


def _class_live_rule(value: Value) -> ClassLive:
    fields = value.fields("hosts", "reason", "allow_fields")
    hosts = fields.given.get("hosts")
    if hosts is None or hosts.blank:
        value.missing(
            "hosts", "missing; expected the hosts that may be reached, as [api.example.com]"
        )
    reason = fields.required("reason", parse_reason, _MISSING_REASON, "")
    return ClassLive(
        fields.texts("hosts", parse_host, ""),
        reason,
        fields.texts("allow_fields", _lower_header_name, ""),
    )


def _classes(value: Value) -> Classes:
    fields = value.fields("inference", "read", "effect", "telemetry")
    return Classes(
        inference=fields.texts("inference", parse_pattern, _NO_MATCH),
        read=fields.texts("read", parse_pattern, _NO_MATCH),
        effect=fields.texts("effect", parse_pattern, _NO_MATCH),
        telemetry=fields.texts("telemetry", parse_pattern, _NO_MATCH),
    )


def _pattern(fields: Fields) -> Match:
    return fields.required("match", parse_pattern, _MISSING_MATCH, _NO_MATCH)


def _live_rule(value: Value) -> LiveRule:
    fields = value.fields("match", "reason", "allow_fields")
    reason = fields.required("reason", parse_reason, _MISSING_REASON, "")
    match = fields.required("match", parse_live_match, _MISSING_MATCH, _NO_MATCH)
    return LiveRule(match, reason, fields.texts("allow_fields", _lower_header_name, ""))


def _effect_rule(value: Value) -> EffectRule:
    fields = value.fields("match", "answer", "gate", "on_miss")
    rule = EffectRule(
        match=_pattern(fields),
        answer=fields.section("answer", _answer, None),
        gate=fields.section("gate", _gate, None),
        on_miss=fields.parsed("on_miss", choice("stub", "refuse"), ""),
    )
    if rule.answer is not None and rule.on_miss == "refuse":
        fields.given["on_miss"].fault("refuse, but the rule has an answer; remove one of the two")
    if value.is_mapping and len(fields.given) == 1 and "match" in fields.given:
        value.fault("says nothing but what it matches; expected answer, gate or on_miss")
    return rule


def _is_yes(text: str) -> bool:
    return choice("true", "false")(text) == "true"


def _sandbox(value: Value) -> Sandbox:
    fields = value.fields("replay", "record", "files", "pipe_search", "image")
    default = Sandbox()
    return Sandbox(
        replay=fields.parsed("replay", _CONTAINMENT, default.replay),
        record=fields.parsed("record", _CONTAINMENT, default.record),
        files=fields.parsed("files", _is_yes, default.files),
        pipe_search_s=fields.parsed("pipe_search", parse_duration, default.pipe_search_s),
        image=fields.optional("image", parse_image),
    )


def _gate(value: Value) -> Gate | None:
    """Read `true`, `false`, `duplicates`, or a mapping with `when` and `deadline`."""
    if not value.is_mapping:
        return value.parsed(_parse_gate, None)
    fields = value.fields("when", "deadline")
    default = Gate()
    return Gate(
        when=fields.parsed("when", choice("always", "duplicates"), default.when),
        deadline_s=fields.parsed("deadline", parse_duration, default.deadline_s),
    )


def _parse_gate(text: str) -> Gate:
    found = {"true": Gate(), "false": Gate("never"), "duplicates": Gate("duplicates")}
    if text not in found:
        raise ValueError(
            f"{show(text)} is no gate; expected true, false, duplicates, or"
            " {when: always or duplicates, deadline: 10m}"
        )
    return found[text]


def _answer(value: Value) -> Answer:
    fields = value.fields("status", "headers", "json", "text", "base64")
    status = fields.parsed("status", integer(200, 599), 200)
    nothing: tuple[tuple[str, str], ...] = ()
    headers = fields.section("headers", _headers, nothing)
    bodies = [key for key in ("json", "text", "base64") if key in fields.given]
    if len(bodies) > 1:
        value.fault(f"more than one body: {', '.join(bodies)}; expected one of them")
    body = b""
    if "json" in fields.given:
        body = fields.given["json"].json().encode()
        if "content-type" not in {name.lower() for name, _ in headers}:
            headers = (*headers, ("content-type", "application/json"))
    elif "text" in fields.given:
        body = fields.parsed("text", str.encode, b"")
    elif "base64" in fields.given:
        body = fields.parsed("base64", parse_base64, b"")
    if status not in (204, 304):
        headers = (*headers, ("content-length", str(len(body))))
    if bodies and status in _NO_CONTENT:
        # RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5; section 8.6 forbids content-length with 204.
        fields.given[bodies[0]].fault(f"an answer with status {status} has no body; remove it")
    if (
        bodies
        and bodies[0] != "base64"
        and any(name.lower() == "content-encoding" for name, _ in headers)
    ):
        fields.given["headers"].fault(
            f"content-encoding, but {bodies[0]} is written as it stands; remove it, or give the coded body as base64"
        )
    return Answer(status, headers, body)


def _headers(value: Value) -> tuple[tuple[str, str], ...]:
    headers: dict[str, tuple[str, str]] = {}
    for name, key, text in value.entries():
        lower = key.parsed(_lower_header_name, "")
        if lower in _COMPUTED:
            key.fault("this header is computed; remove it")
        elif lower in _OF_CONNECTION:
            key.fault("this header is the connection's; remove it")
        elif lower in headers:
            key.fault("the same header in another case; keep one of them")
        headers[lower] = (name, text.parsed(parse_header_value, ""))
    return tuple(headers.values())


def _lower_header_name(text: str) -> str:
    return parse_header_name(text).lower()


def _read_rule(value: Value) -> ReadRule:
    fields = value.fields("match", "repeat")
    missing = "missing; expected last: the last recorded answer is served again"
    return ReadRule(_pattern(fields), fields.required("repeat", choice("last"), missing, "last"))


_OF_KIND = {
    "delay": (Inject.DELAY,),
    "status": (Inject.STATUS,),
    "retry_after": (Inject.STATUS,),
    "after_bytes": (Inject.CUT,),
    "ending": (Inject.CUT, Inject.RESET),
}
"""Keys of a fault that only some kinds have."""
_CHOOSING = ("nth", "every", "share")


def _fault_rule(value: Value) -> FaultRule:
    fields = value.fields("match", "inject", "name", *_CHOOSING, *_OF_KIND, "modes")
    kinds = tuple(kind.value for kind in Inject)
    missing = f"missing; expected one of {', '.join(kinds)}"
    default = FaultRule(_NO_MATCH, Inject.RESET)
    rule = FaultRule(
        match=_pattern(fields),
        inject=Inject(fields.required("inject", choice(*kinds), missing, default.inject.value)),
        name=fields.parsed("name", parse_fault_name, default.name),
        nth=fields.optional("nth", integer(1, _MOST)),
        every=fields.optional("every", integer(1, _MOST)),
        share=fields.optional("share", parse_share),
        delay_s=fields.parsed("delay", parse_duration, default.delay_s),
        status=fields.parsed("status", integer(400, 599), default.status),
        retry_after_s=fields.optional("retry_after", integer(0, 86_400)),
        after_bytes=fields.parsed("after_bytes", integer(0, _MOST), default.after_bytes),
        ending=fields.parsed("ending", choice("rst", "fin"), default.ending),
        modes=fields.texts("modes", _fault_mode, Mode.RECORD) or default.modes,
    )
    _check_fault(value, fields, rule)
    return rule


def _check_fault(value: Value, fields: Fields, rule: FaultRule) -> None:
    """Note keys that do not go together, or are missing for what is injected."""
    chosen = [key for key in _CHOOSING if key in fields.given and not fields.given[key].empty]
    if len(chosen) > 1:
        fields.given[chosen[1]].fault(f"beside {chosen[0]}; expected one of {', '.join(_CHOOSING)}")
    if "inject" not in fields.given or fields.given["inject"].text() not in set(Inject):
        return
    for key, kinds in _OF_KIND.items():
        if key in fields.given and rule.inject not in kinds:
            fields.given[key].fault(
                f"only for {' and '.join(kinds)}, but this rule injects {rule.inject.value}; remove it"
            )
    if rule.inject is Inject.DELAY and "delay" not in fields.given:
        value.missing("delay", "missing; expected how much later the answer begins, as 10s")
    if rule.inject is Inject.STATUS and "status" not in fields.given:
        value.missing("status", "missing; expected the answer's status, as 503")


def _fault_mode(text: str) -> Mode:
    return Mode(choice(Mode.RECORD.value, Mode.PLAYBACK.value)(text))


def _contract_rule(value: Value, base: Path | None) -> ContractRule:
    fields = value.fields("match", "request", "response", "on_violation")
    default = ContractRule(_NO_MATCH)
    rule = ContractRule(
        match=_pattern(fields),
        request=fields.section("request", lambda given: _schema(given, base), default.request),
        response=fields.section("response", lambda given: _schema(given, base), default.response),
        on_violation=fields.parsed("on_violation", _on_violation, default.on_violation),
    )
    if value.is_mapping and not any(
        key in fields.given and not fields.given[key].empty for key in ("request", "response")
    ):
        value.fault("says nothing of what it matches; expected request or response, a JSON Schema")
    return rule


def _on_violation(text: str) -> OnViolation:
    return OnViolation(choice(*(violation.value for violation in OnViolation))(text))


def _model_violation(text: str) -> OnViolation | None:
    found = choice("off", *(violation.value for violation in OnViolation))(text)
    return None if found == "off" else OnViolation(found)


def _schema(value: Value, base: Path | None) -> str:
    """Read a schema that stands here, or in the file that is named; gives it as JSON."""
    if value.is_mapping:
        text = value.json()
        try:
            compile_schema(text)
        except BadSchema as error:
            value.find(error.path).fault(f"no JSON Schema: {error}")
        return text
    path = value.parsed(lambda given: _based(base, parse_place(given)), None)
    return "" if path is None else value.parsed(lambda _: read_schema(path), "")


def _ignore_rule(value: Value) -> IgnoreRule:
    fields = value.fields("match", "json", "header", "query", "form", "regex")
    rule = IgnoreRule(
        match=_pattern(fields),
        json=fields.texts("json", check_json_path, ""),
        header=fields.texts("header", _lower_header_name, ""),
        query=fields.texts("query", parse_parameter, ""),
        form=fields.texts("form", parse_parameter, ""),
        regex=fields.texts("regex", check_regex, ""),
    )
    places = [place for key, place in fields.given.items() if key != "match"]
    if value.is_mapping and all(place.blank for place in places):
        value.fault("names no place; expected one of json, header, query, form, regex")
    return rule


def _read_profile(text: str, base: Path | None) -> ProfileFile:
    path = _based(base, parse_place(text))
    return ProfileFile(str(path), read_profile(path))


def _parse_profile(text: str) -> str:
    return choice(*(profile.name for profile in shipped_profiles()))(text)


def _redact_rule(value: Value) -> RedactRule:
    more = {"pattern": check_secret_regex, "path": check_secret_regex}
    fields, places = _one_place(value, more, "pii")
    kinds = fields.texts("pii", parse_personal_kind, "")
    if "pii" in fields.given and not kinds:
        fields.given["pii"].fault(f"names nothing; expected a list of {', '.join(PERSONAL_KINDS)}")
    return RedactRule(**places, pii=tuple(filter(None, kinds)))


def _redact_rules(value: Value) -> tuple[RedactRule, ...]:
    # `redact: {pii: [email]}` is short for a list of that one entry.
    return tuple(map(_redact_rule, [value] if value.is_mapping else value.items()))


def _keep_rule(value: Value) -> KeepRule:
    return KeepRule(**_one_place(value, {"format": parse_secret_format})[1])


def _one_place(
    value: Value, more: Mapping[str, Callable[[str], str]], *lists: str
) -> tuple[Fields, dict[str, str]]:
    """Read a rule that names one place: of a request's parts, or in one of the ways given.

    more: further places, and what reads each.
    lists: further places that are read elsewhere.
    """
    parsers = {
        "header": _lower_header_name,
        "query": parse_parameter,
        "json": parse_parameter,
        "form": parse_parameter,
        **more,
    }
    fields = value.fields(*parsers, *lists)
    if value.is_mapping and len(fields.given) != 1:
        value.fault(f"expected exactly one of {', '.join((*parsers, *lists))}")
    return fields, {key: fields.parsed(key, parse, "") for key, parse in parsers.items()}


def _limits(value: Value) -> Limits:
    fields = value.fields("calls", "tokens", "usd", "repeats")
    limits = Limits(
        calls=fields.optional("calls", integer(1, _MOST)),
        tokens=fields.optional("tokens", integer(1, _MOST)),
        usd=fields.optional("usd", parse_usd),
        repeats=fields.optional("repeats", integer(1, _MOST)),
    )
    if limits.usd is not None and find_spec("genai_prices") is None:
        fields.given["usd"].fault(
            "the prices of models are not installed; install playhead[prices], or limit tokens"
        )
    return limits


def _sink(value: Value, base: Path | None) -> Sink:
    fields = value.fields("file", "url", "reason", "patience")
    default = Sink()
    sink = Sink(
        file=fields.optional("file", lambda text: _based(base, parse_place(text))),
        url=fields.optional("url", parse_sink_url) or "",
        reason=fields.optional("reason", parse_reason) or "",
        patience_s=fields.parsed("patience", parse_duration, default.patience_s),
    )
    if sink.url and not is_loopback(url_host(sink.url)) and not sink.reason:
        fields.given["url"].fault(
            f"{show(url_host(sink.url))} is another machine: effects are told to it in playback too, so it needs a"
            " reason, as a live rule does; add sink.reason, or name 127.0.0.1"
        )
    return sink


def _retention(value: Value, place: Callable[[str], Path]) -> Retention:
    fields = value.fields("hot", "keep", "labels", "archive")
    default = Retention()
    labels = fields.given.get("labels")
    return Retention(
        hot_s=fields.parsed("hot", parse_duration, default.hot_s),
        keep_s=fields.parsed("keep", parse_keep, default.keep_s),
        labels=tuple(map(_label, labels.entries() if labels is not None else ())),
        archive=fields.optional("archive", lambda text: parse_archive(text, place)),
    )


def _label(entry: Entry) -> tuple[str, float | None]:
    if not is_label(entry.name):
        entry.key.fault(f"{show(entry.name)} is no label; {LABEL_RULE}")
    return entry.name, entry.value.parsed(parse_keep, None)


def _encrypt(value: Value, place: Callable[[str], Path]) -> Encrypt:
    fields = value.fields("key_file")
    return Encrypt(key_file=fields.optional("key_file", place))


def _control(value: Value, place: Callable[[str], Path]) -> Control:
    fields = value.fields("listen", "token_file", "tls", "hosts", "public")
    default = Control()
    control = Control(
        listen=fields.parsed("listen", parse_control_listen, default.listen),
        token_file=fields.optional("token_file", place),
        tls=fields.section("tls", lambda given: _tls(given, place), None),
        hosts=fields.texts("hosts", parse_host, ""),
        public=fields.parsed("public", _is_yes, False),
    )
    listen = control.listen
    open_to_others = listen is not None and not is_loopback(listen.host)
    if open_to_others and control.tls is None and not control.public:
        fields.given["listen"].fault(
            f"{listen} can be reached from other machines, which would read the token on the way; give"
            " control.tls, or listen on 127.0.0.1, or say control.public: true where something else"
            " protects it"
        )
    return control


def _tls(value: Value, place: Callable[[str], Path]) -> Tls:
    fields = value.fields("cert", "key")
    return Tls(
        cert=fields.required(
            "cert", place, "missing; expected a PEM file: the certificate", Path()
        ),
        key=fields.required(
            "key", place, "missing; expected a PEM file: the certificate's key", Path()
        ),
    )
