"""The configuration as frozen values: the top-level keys here, those of a section in `config/sections/`.

Each key is declared once, by `key_declarations.py`, with its default and the sentence that the documentation gives it. Units stand in
names of fields (`grace_s`).
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .key_declarations import (
    custom,
    declare,
    entries,
    key,
    optional,
    optional_path,
    path,
    ref,
    section,
    texts,
)
from .parse_values import Integer, choice, member, parse_listen, parse_mode, parse_version
from .profiles.client_profile_file import ProfileFile
from .sections.contracts import ContractRule, OnViolation, parse_model_violation
from .sections.control_and_sandbox import Control, Sandbox, Tls
from .sections.effects import Answer, EffectRule, Gate, ReadRule
from .sections.faults import MOST, FaultRule, Inject
from .sections.ignore import IgnoreRule, parse_profile, read_profiles
from .sections.limits import Limits, Sink
from .sections.live import Classes, ClassLive, LiveRule
from .sections.playback import Playback
from .sections.retention import Retention
from .sections.runs import Runs, UpstreamEncoding
from .sections.secrets import (
    KEY_VARIABLE,
    Encrypt,
    KeepRule,
    RedactRule,
    Secrets,
    read_redact_rules,
)
from .sections.upstreams import ClientCertificate, ProxyAddress, UpstreamProxy
from .sections.working_folder import Files
from .value_types import CONFIG_VERSION, Listen, Mode, ModelDrift

__all__ = [
    "CONFIG_VERSION",
    "KEY_VARIABLE",
    "Answer",
    "ClassLive",
    "Classes",
    "ClientCertificate",
    "Config",
    "ContractRule",
    "Control",
    "Durability",
    "EffectRule",
    "Encrypt",
    "FaultRule",
    "Gate",
    "IgnoreRule",
    "Inject",
    "KeepRule",
    "Limits",
    "Listen",
    "LiveRule",
    "Mode",
    "ModelDrift",
    "OnFull",
    "OnViolation",
    "Playback",
    "ProfileFile",
    "ProxyAddress",
    "ReadRule",
    "RedactRule",
    "Retention",
    "Runs",
    "Sandbox",
    "Secrets",
    "Sink",
    "Tls",
    "UpstreamEncoding",
    "UpstreamProxy",
]


class OnFull(StrEnum):
    """What becomes of requests that cannot be recorded."""

    STOP = "stop"
    """They are refused."""
    PASS = "pass"
    """They go on unrecorded, and the run has a gap."""


class Durability(StrEnum):
    """What an exchange outlives once its client has seen it complete."""

    PROCESS = "process"
    """The death of the process; a power cut may take the last commit."""
    POWER = "power"
    """A power cut too."""


_NO_REDACTIONS: tuple[RedactRule, ...] = ()
_NO_PROFILES: tuple[ProfileFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a process of Playhead is told."""

    version: int = key(
        "1",
        parse_version,
        "File format; newer ones are refused.",
    )
    mode: Mode = key(
        "record",
        parse_mode,
        "For new runs: `record`, `playback` or `passthrough` (forwards without recording).",
    )
    listen: Listen = key(
        "127.0.0.1:8080",
        parse_listen,
        "`HOST:PORT`; port 0 is a free one. Beyond loopback, `runs.tokens` are required.",
    )
    store: Path = path("./.playhead", "Folder of everything that Playhead stores.")
    durability: Durability = key(
        "process",
        member(Durability),
        "A completed exchange [survives](durability.md) the death of the process (`process`), or a power cut,"
        " too (`power`, slower).",
    )
    on_full: OnFull = key(
        "stop",
        member(OnFull),
        "On a [full disk](durability.md#a-full-disk): `stop` refuses requests, `pass` lets them go on unrecorded.",
    )
    ballast_mib: int = key(
        "16",
        Integer(0, 4096),
        "MiB kept for `playhead gc` and `erase` on a full disk; 0 for none.",
    )
    ca_dir: Path | None = optional_path("Folder of the CA's public files; `null` is `<store>/ca`.")
    upstream_ca: Path | None = optional_path(
        "PEM file of roots to trust upstream, besides the system's."
    )
    upstream_proxy: UpstreamProxy = section(
        UpstreamProxy,
        "By which [proxies of your network](company-networks.md) upstreams are reached.",
    )
    client_certificates: tuple[ClientCertificate, ...] = entries(
        ClientCertificate,
        "Certificates that upstreams ask for (mutual TLS), each with `hosts`, `cert` and `key`.",
        example="""\
- hosts: [api.example.com, "*.internal.example.com"]
  cert: client.pem
  key: client-key.pem""",
    )
    upstream_encoding: UpstreamEncoding = section(
        UpstreamEncoding,
        "By class of request: request no content coding upstream (`identity`), or the agent's own choice.",
    )
    runs: Runs = section(Runs)
    playback: Playback = section(Playback)
    classes: Classes = section(
        Classes,
        "[Match patterns](match-patterns.md) that extend the shipped table of request classes.",
    )
    live_max: int = key(
        "5",
        Integer(0, 1000),
        "Most live rules and hosts of live classes; more are an error.",
    )
    live: tuple[LiveRule, ...] = entries(
        LiveRule,
        "Requests that may leave in playback. Nothing else leaves.",
        example="""\
- match: POST https://metrics.example.com/v1/emit
  reason: metrics emit
  allow_fields: [x-project-path]  # header fields that read as a host or path, and are none
- match: tcp://127.0.0.1:5432     # a service of this machine, let into the sandbox
  reason: the test database""",
    )
    effects: tuple[EffectRule, ...] = entries(
        EffectRule,
        "Rules about effects. A gate holds a request that would leave until a person decides (`playhead gates`);"
        " an answer is given in playback if the tape has none.",
        example="""\
- match: POST https://api.example.com/v1/refunds
  gate: duplicates          # true | false | duplicates: only one that may repeat an earlier effect
- match: POST https://api.example.com/v1/wires
  gate: {when: always, deadline: 10m}     # always | duplicates
- match: POST https://api.example.com/v1/mails
  on_miss: refuse           # stub | refuse, in place of playback.effects
- match: POST https://api.example.com/v1/notes
  answer:                   # in playback, where the tape has none
    status: 200             # 200 to 599
    headers: {x-request-id: stub}
    json: {object: note, status: kept}     # or text: ..., or base64: ...""",
    )
    reads: tuple[ReadRule, ...] = entries(
        ReadRule,
        "Reads that poll: once all recorded answers are used up, the last is served again.",
        example="- match: GET https://api.example.com/v1/jobs/*\n  repeat: last",
    )
    faults: tuple[FaultRule, ...] = entries(
        FaultRule,
        "[Faults on purpose](faults.md), each with `match` and `inject`.",
        example="""\
- {match: POST https://api.example.com/v1/refunds, inject: timeout_after_success, nth: 1}
- {match: "https://api.example.com/*", inject: status, status: 503, retry_after: 2, share: 0.1, name: busy}
- {match: "https://api.example.com/*", inject: delay, delay: 20s, every: 10}
- {match: "https://api.example.com/*", inject: cut, after_bytes: 100, ending: fin, modes: [playback]}
- {match: "https://api.example.com/*", inject: reset, ending: rst, nth: 3, modes: [record, playback]}
- {match: "https://api.example.com/*", inject: timeout, nth: 4}""",
    )
    fault_seed: int = key(
        "0",
        Integer(0, MOST),
        "Seed of `share`.",
    )
    contracts: tuple[ContractRule, ...] = entries(
        ContractRule,
        "[Schemas](contracts.md) of requests and answers.",
        example="""\
- match: POST https://api.example.com/v1/refunds
  request: {type: object, properties: {amount: {type: integer}}, required: [amount]}
  response: {type: object, required: [status]}
  on_violation: note        # note | refuse: the agent gets a refusal in the place of the answer""",
    )
    model_contracts: OnViolation | None = key(
        "off",
        parse_model_violation,
        "Check model answers against the tools and formats that their requests declare: `off`, `note` or `refuse`.",
    )
    sink: Sink = section(
        Sink,
        "File or URL that each effect is [sent to as it happens](effects.md#effects-as-they-happen).",
    )
    ignore: tuple[IgnoreRule, ...] = entries(
        IgnoreRule,
        "Volatile places: left out of the comparison with the tape, kept in the record.",
        example="""\
- match: POST https://api.example.com/*
  json: ["$.request_id", "$.items[*].ts"]
  header: [x-trace-id]
  query: [nonce]
  form: [timestamp]
  regex: ["req_[0-9a-f]{8,}", "expires at (\\\\S+)"]     # the first group, where there is one""",
    )
    profiles: tuple[ProfileFile, ...] = declare(
        read_profiles,
        _NO_PROFILES,
        "Files with [client profiles](profiles.md) of your own, as `[my-agent.yaml]`.",
        shown="[]",
        shape={"type": ["array", "null"], "items": {"type": "string"}},
    )
    profiles_off: tuple[str, ...] = texts(
        parse_profile,
        "Client profiles (`playhead profiles`) that are not applied.",
        example="- claude-code",
    )
    redact: tuple[RedactRule, ...] = custom(
        read_redact_rules,
        _NO_REDACTIONS,
        "Further places of secrets: exactly one of `header`, `query`, `json`, `form`, `pattern`, `path` and `pii` each.",
        shown="[]",
        shape={"anyOf": [ref(RedactRule), {"type": "array", "items": ref(RedactRule)}]},
        section=RedactRule,
        example="""\
- header: x-internal-token
- query: session_key
- json: pin                            # a field of JSON of this name, wherever it stands
- form: pin                            # the same of a form, or a part of a multipart body
- pattern: "acme_[0-9a-f]{16,}"        # in any text; the first group, where there is one
- path: "^/hooks/([^/]+)"              # in paths
- pii: [email, phone, iban, card, ssn] # personal data, wherever they are: pseudonyms take their place""",
    )
    redact_off: tuple[KeepRule, ...] = entries(
        KeepRule,
        "Shipped places and formats that are not replaced: exactly one of `header`, `query`, `json`, `form` and"
        " `format` each.",
        example="- header: x-csrf-token\n- json: password\n- format: jwt",
    )
    secrets: Secrets = key(
        "replaced",
        member(Secrets),
        "Secrets in answers: `replaced` by placeholders, or also kept `encrypted`, so that replays from this"
        " store have every byte. That needs a key from outside the store: `encrypt.key_file` elsewhere, or `PLAYHEAD_ENCRYPTION_KEY`.",
    )
    limits: Limits = section(
        Limits,
        "What one run may use; further requests are refused. Without a number: no limit.",
        example="""\
calls: 500                # requests that leave, telemetry aside
tokens: 2000000           # of model calls, asked and answered
usd: 5.00                 # of model calls; needs playhead[prices]
repeats: 20               # the same request in a row at its endpoint""",
    )
    retention: Retention = section(Retention)
    encrypt: Encrypt = section(
        Encrypt,
        "[Encryption](encryption.md) of the store. `playhead rekey --new-key FILE` makes a key.",
    )
    control: Control = section(
        Control,
        "[The control API](control.md). Every request needs the token.",
    )
    sandbox: Sandbox = section(
        Sandbox, "Where `playhead replay` and `playhead record` run a command."
    )
    files: Files = section(
        Files,
        "The [working folder](files.md).",
    )
    determinism: str | None = optional(
        choice("off", "seed", "full"),
        "[Record and replay](determinism.md) randomness (`seed`), and the clock, too (`full`), or neither "
        "(`off`). `null`: `off` for `record`; for `replay` as recorded.",
    )
    libc_preload: str | None = optional(
        choice("auto", "off"),
        "With `determinism`, load [a library](libc_preload.md) into programs of other runtimes: `auto`, if it"
        " can be compiled, or `off`. `null`: `off` for `record`; for `replay` as recorded.",
    )

    @property
    def public_ca_dir(self) -> Path:
        """Folder of the CA's public files."""
        return self.ca_dir or self.store / "ca"
