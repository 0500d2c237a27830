"""What was asked: the configuration's schema, its loading with exact places, its match patterns.

Everything here is a frozen value once loaded. The file is read by `load`, flags of a command are laid
over it by `override`, and `Watcher` says when the file's meaning changed.
"""

from .archive_url import ArchivePlace
from .errors import ConfigError, Fault
from .load import load, loads, override
from .match_pattern import Match, parse_match
from .schema import (
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
    Listen,
    LiveRule,
    Mode,
    ModelDrift,
    OnFull,
    OnViolation,
    Playback,
    ReadRule,
    RedactRule,
    Retention,
    Runs,
    Sandbox,
    Sink,
    Tls,
    UpstreamEncoding,
)
from .values import parse_listen, parse_run_name
from .watch import Watcher

__all__ = [
    "Answer",
    "ArchivePlace",
    "ClassLive",
    "Classes",
    "Config",
    "ConfigError",
    "ContractRule",
    "Control",
    "Durability",
    "EffectRule",
    "Encrypt",
    "Fault",
    "FaultRule",
    "Gate",
    "IgnoreRule",
    "Inject",
    "KeepRule",
    "Limits",
    "Listen",
    "LiveRule",
    "Match",
    "Mode",
    "ModelDrift",
    "OnFull",
    "OnViolation",
    "Playback",
    "ReadRule",
    "RedactRule",
    "Retention",
    "Runs",
    "Sandbox",
    "Sink",
    "Tls",
    "UpstreamEncoding",
    "Watcher",
    "load",
    "loads",
    "override",
    "parse_listen",
    "parse_match",
    "parse_run_name",
]
