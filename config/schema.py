"""The configuration as frozen values, with every default.

Units stand in names (`grace_s`). What a key means for a person is written beside it in
`config/playhead.yaml`, which is the reference; `docs/configuration.md` is checked against this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from .archive_url import ArchivePlace
from .match_pattern import Match


class Mode(StrEnum):
    """What happens to a new run; fixed for the run's life."""

    RECORD = "record"
    PLAYBACK = "playback"
    PASSTHROUGH = "passthrough"


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


class Secrets(StrEnum):
    """What is kept of a secret that redaction replaces."""

    REPLACED = "replaced"
    """Nothing."""
    ENCRYPTED = "encrypted"
    """What it replaced in answers, in an encrypted store, for replays on this machine."""


KEY_VARIABLE = "PLAYHEAD_ENCRYPTION_KEY"
"""Variable of the environment that may hold the store's encryption key."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Address the proxy listens on; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 8080

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Runs:
    """How runs are told apart and when they end."""

    default: str = "per-process"
    """`per-process`, or the name that every request without credentials is recorded under."""
    grace_s: float = 10.0
    tokens: Mapping[str, str] = field(default_factory=dict)
    """Token by run name; the name may hold `*`. Empty accepts any token, on loopback only."""
    strict: bool = False
    """Whether `record` fails where something was asked past it, or could not be: see `Receipt.unrecorded`."""


@dataclass(frozen=True, slots=True)
class ClassLive:
    """A whole class of requests goes live in playback, to these hosts and no others."""

    hosts: tuple[str, ...]
    reason: str
    allow_fields: tuple[str, ...] = ()
    """As of a live rule."""


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """An opt-in: what was asked of one model is answered by what another had said."""

    recorded: str
    asked: str
    """May be the same: then all but the model may drift."""

    def __str__(self) -> str:
        return f"{self.recorded}={self.asked}"


@dataclass(frozen=True, slots=True)
class Playback:
    """What playback serves, and what it does about the rest."""

    run: str = "latest"
    inference: ClassLive | None = None
    """None: from the tape."""
    reads: ClassLive | None = None
    effects: str = "stub"
    """`stub` (from configured answers, or after the tape's) or `refuse`."""
    pace: float = 0.0
    """0 is `instant`, 1 is `recorded`, anything else is a factor on the recorded gaps."""
    sleeps: str = "real"
    """`real`, or `short`: how long a command of `replay` sleeps that lives on the recorded clock."""
    allow_model_drift: tuple[ModelDrift, ...] = ()
    order: str = "effects"
    """Which order counts within a lane: that of `effects` (among themselves, and with reads and model calls), `strict` (all) or
    `free` (none)."""
    compare: tuple[str, ...] = ()
    """What of a command is compared beside its exit code: `stdout`, `files`."""
    late: str = "held"
    """Of what the recorded client had left before it came: `held` back, or `served` at its time."""
    late_wait: float = 60.0
    """Seconds for which a client is kept waiting for it, from the time at which the recorded one left."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Patterns that extend the shipped table of request classes."""

    inference: tuple[Match, ...] = ()
    read: tuple[Match, ...] = ()
    effect: tuple[Match, ...] = ()
    telemetry: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class UpstreamEncoding:
    """By class, whether a content coding is asked for upstream: True asks for identity."""

    inference: bool = True
    reads: bool = False
    effects: bool = False


@dataclass(frozen=True, slots=True)
class LiveRule:
    """An allowlist entry: what may leave in playback, and why."""

    match: Match
    """Requests; or, as `tcp://HOST:PORT` or `unix:///PATH`, a service of this machine that is let into a sandbox."""
    reason: str
    allow_fields: tuple[str, ...] = ()
    """Header fields, in lower case, whose values are no addresses for the server, however they read."""

    @property
    def service(self) -> tuple[str, int] | None:
        """Host and port of a service that is let into a sandbox; None where it speaks of requests."""
        if self.match.scheme != "tcp" or self.match.port is None:
            return None
        return self.match.host, self.match.port

    @property
    def socket(self) -> str | None:
        """Path of a socket that is let into a sandbox; None where it speaks of anything else."""
        return self.match.path if self.match.scheme == "unix" else None

    @property
    def is_local(self) -> bool:
        """Whether it speaks of a service of this machine, and of no request."""
        return self.service is not None or self.socket is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """A configured answer for an effect that is not on the tape."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Gate:
    """Requests that match wait until a person lets them go."""

    when: str = "always"
    """`always`; `duplicates`, only an effect that may repeat an earlier one of its run; or `never`, an exception to a
    wider rule."""
    deadline_s: float = 600.0
    """Who has not been let go by then is refused."""


@dataclass(frozen=True, slots=True)
class EffectRule:
    """What to do with effects that match."""

    match: Match
    answer: Answer | None = None
    gate: Gate | None = None
    """Before it is sent, in record and where it goes live."""
    on_miss: str = ""
    """In playback, where the tape does not hold it: `stub` or `refuse`; empty for what `playback.effects` says."""


@dataclass(frozen=True, slots=True)
class ReadRule:
    """What to do with reads that match, once every recorded answer to them has been served."""

    match: Match
    repeat: str
    """`last`: the last recorded answer is served again."""


class Inject(StrEnum):
    """What is done on purpose to a request or its answer."""

    DELAY = "delay"
    """The answer begins later."""
    STATUS = "status"
    """An answer of ours; the upstream is not asked."""
    CUT = "cut"
    """The answer ends after so many bytes."""
    RESET = "reset"
    """The connection ends before any answer; the upstream is not asked."""
    TIMEOUT = "timeout"
    """Nothing is ever answered; the upstream is not asked."""
    TIMEOUT_AFTER_SUCCESS = "timeout_after_success"
    """The upstream is asked and does it; the client is told nothing."""


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A fault on purpose: which requests it hits, and what they meet with."""

    match: Match
    inject: Inject
    name: str = ""
    """Empty: what it does and its pattern."""
    nth: int | None = None
    """Only the nth request that matches, from 1. Of `nth`, `every` and `share` at most one is given; none: all."""
    every: int | None = None
    """Every so many that match."""
    share: float | None = None
    """About this part of them, drawn with `fault_seed`."""
    delay_s: float = 0.0
    """Of `delay`."""
    status: int = 0
    """Of `status`."""
    retry_after_s: int | None = None
    """Of `status`: what its Retry-After says."""
    after_bytes: int = 0
    """Of `cut`: bytes of the body before it."""
    ending: str = "rst"
    """Of `cut` and `reset`: `rst` or `fin`."""
    modes: tuple[Mode, ...] = (Mode.RECORD, Mode.PLAYBACK)

    @property
    def label(self) -> str:
        """Its name in logs, receipts and header fields."""
        return self.name or f"{self.inject.value} {self.match.text}"


class OnViolation(StrEnum):
    """What Playhead does if a message violates its contract."""

    NOTE = "note"
    """It is an event of the run, and nothing else."""
    REFUSE = "refuse"
    """The client is sent a refusal in the place of an answer, where that can be done."""


@dataclass(frozen=True, slots=True)
class ContractRule:
    """What requests to an endpoint and its answers have to look like."""

    match: Match
    request: str = ""
    """JSON Schema of the request's body, as JSON text; empty for none."""
    response: str = ""
    """The same of the body of an answer with status 2xx."""
    on_violation: OnViolation = OnViolation.NOTE


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Volatile places of matching requests: left out of the comparison, kept in the record."""

    match: Match
    json: tuple[str, ...] = ()
    """JSON paths, as `$.request_id` or `$.items[*].ts`."""
    header: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    """Patterns; what they match is left out of the path, of values and of texts."""


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """The profile of a client in a file of the user's own, as it was when the configuration was read."""

    path: str
    text: str
    """Sound: it was read before."""


@dataclass(frozen=True, slots=True)
class RedactRule:
    """A further place that holds a secret: exactly one of these is set."""

    header: str = ""
    query: str = ""
    json: str = ""
    """Name of a field of JSON, wherever it stands."""
    form: str = ""
    pattern: str = ""
    """What it matches in any text, or its group, is a secret."""
    path: str = ""
    """The same in paths."""
    pii: tuple[str, ...] = ()
    """Kinds of personal data, wherever they are."""


@dataclass(frozen=True, slots=True)
class KeepRule:
    """A shipped place or format that is not redacted: exactly one of these is set."""

    header: str = ""
    query: str = ""
    json: str = ""
    form: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use up of the world; None is no limit."""

    calls: int | None = None
    """Requests that leave."""
    tokens: int | None = None
    """Of model calls, asked and answered."""
    usd: Decimal | None = None
    repeats: int | None = None
    """The same request in a row."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where each effect is told as it happens."""

    file: Path | None = None
    """Lines of JSON are appended to it."""
    url: str = ""
    """One JSON object is posted to it for each."""
    reason: str = ""
    """Why a host other than this machine may be told."""
    patience_s: float = 5.0
    """How long effects are held back for a sink that does not keep up, before rows are lost."""

    @property
    def used(self) -> bool:
        """Whether there is one."""
        return self.file is not None or bool(self.url)


@dataclass(frozen=True, slots=True)
class Retention:
    """What `playhead gc` may delete: nothing, unless a time to keep it is given."""

    hot_s: float = 72 * 3600.0
    keep_s: float | None = None
    """Since a run has ended; None: forever."""
    labels: tuple[tuple[str, float | None], ...] = ()
    """The same for runs with a label, by label; of several the longest."""
    archive: ArchivePlace | None = None
    """Where `playhead archive` moves runs; None: nowhere."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Whether a command runs where the proxy is the only thing that it can reach.

    `contained`, `strict` (there it has no Unix sockets either), `none`, or `docker` (in containers).
    """

    replay: str = "contained"
    """Of commands that are replayed."""
    record: str = "none"
    """Of commands that are recorded."""
    files: bool = False
    """Whether bubblewrap makes their file system: the working folder, the system read only, an empty home."""
    pipe_search_s: float = 0.2
    """Of a processor's time, to look for named pipes where the command works."""
    image: str | None = None
    """Of Docker's; what a command is run in where it is in containers."""


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Whether the store is encrypted."""

    key_file: Path | None = None
    """File that holds the key, 0600. None: encrypted only if the environment holds a key."""


@dataclass(frozen=True, slots=True)
class Tls:
    """What a server proves itself with: PEM files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Control:
    """The control API: where it listens, and who may ask it."""

    listen: Listen | None = field(default_factory=lambda: Listen("127.0.0.1", 0))
    """None: there is none."""
    token_file: Path | None = None
    """None: `<store>/private/control-token`."""
    tls: Tls | None = None
    hosts: tuple[str, ...] = ()
    """Further names under which it is reached."""
    public: bool = False
    """Whether it may be reached from other machines without TLS."""


CONFIG_VERSION = 1
"""The version of the configuration file that is read: what its key `version` may say."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a process of Playhead is told."""

    version: int = CONFIG_VERSION
    """Of the format of the file."""
    mode: Mode = Mode.RECORD
    listen: Listen = field(default_factory=Listen)
    store: Path = Path(".playhead")
    durability: Durability = Durability.PROCESS
    on_full: OnFull = OnFull.STOP
    ballast_mib: int = 16
    """Size of the file that `gc` and `erase` give up to free space for deleting; 0 for none."""
    ca_dir: Path | None = None
    """None: `<store>/ca`."""
    upstream_ca: Path | None = None
    """PEM file of roots to trust upstream besides the system's."""
    upstream_encoding: UpstreamEncoding = field(default_factory=UpstreamEncoding)
    runs: Runs = field(default_factory=Runs)
    playback: Playback = field(default_factory=Playback)
    classes: Classes = field(default_factory=Classes)
    live_max: int = 5
    live: tuple[LiveRule, ...] = ()
    effects: tuple[EffectRule, ...] = ()
    reads: tuple[ReadRule, ...] = ()
    faults: tuple[FaultRule, ...] = ()
    fault_seed: int = 0
    """What `FaultRule.share` draws with."""
    contracts: tuple[ContractRule, ...] = ()
    model_contracts: OnViolation | None = None
    """Of answers of models, by what the request declares; None leaves them unread."""
    sink: Sink = field(default_factory=Sink)
    ignore: tuple[IgnoreRule, ...] = ()
    profiles: tuple[ProfileFile, ...] = ()
    profiles_off: tuple[str, ...] = ()
    """Names of client profiles under which nothing is left out."""
    redact: tuple[RedactRule, ...] = ()
    redact_off: tuple[KeepRule, ...] = ()
    secrets: Secrets = Secrets.REPLACED
    """Whether what redaction replaces in answers is kept, encrypted under a key from outside the store."""
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)
    encrypt: Encrypt = field(default_factory=Encrypt)
    control: Control = field(default_factory=Control)
    sandbox: Sandbox = field(default_factory=Sandbox)
    determinism: str | None = None
    """Of a command's clock and randomness: `off`, `seed` or `full`. None: off in record, in a replay as recorded."""
    libc_preload: str = "auto"
    """For that, whether a library is loaded into programs that are neither Python nor Node: `auto`, where it can be; `off`."""

    @property
    def public_ca_dir(self) -> Path:
        """Folder of the CA's public files."""
        return self.ca_dir or self.store / "ca"
