"""The control API, and where a command runs."""

from dataclasses import dataclass, field
from pathlib import Path

from ..document import Fields
from ..key_declarations import (
    custom,
    key,
    optional,
    optional_path,
    read_section,
    ref,
    required_path,
    texts,
)
from ..parse_values import (
    choice,
    is_loopback,
    parse_control_listen,
    parse_duration,
    parse_host,
    parse_image,
    parse_port,
    parse_yes,
)
from ..value_types import Listen


@dataclass(frozen=True, slots=True)
class Tls:
    """What a server proves itself with: PEM files."""

    cert: Path = field(
        metadata=required_path("missing; expected a PEM file: the certificate", "The certificate.")
    )
    key: Path = field(
        metadata=required_path("missing; expected a PEM file: the certificate's key", "Its key.")
    )


_NO_TLS: Tls | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The control API: where it listens, and who may ask it."""

    listen: Listen | None = key(
        "127.0.0.1:0",
        parse_control_listen,
        "`HOST:PORT` (port 0 is a free one), or `off`.",
    )
    """None: there is none."""
    token_file: Path | None = optional_path(
        "File of the bearer token, mode 0600, made if missing; `null` is `<store>/private/control-token`."
    )
    tls: Tls | None = custom(
        lambda value: read_section(Tls, value),
        _NO_TLS,
        "`cert` and `key`, PEM files; `null` is plain HTTP.",
        shown="null",
        shape=ref(Tls),
        section=Tls,
    )
    hosts: tuple[str, ...] = texts(
        parse_host,
        "Further host names, besides its address and loopback.",
        example="- playhead.internal.example.com",
    )
    public: bool = key(
        "false",
        parse_yes,
        "`true` allows plain HTTP beyond loopback, if something else protects it.",
    )

    def check(self, given: Fields) -> None:
        """Note an address that others reach without protection."""
        listen = self.listen
        open_to_others = listen is not None and not is_loopback(listen.host)
        if open_to_others and self.tls is None and not self.public:
            given.given["listen"].fault(
                f"{listen} can be reached from other machines, which would read the token on the way; give"
                " control.tls, or listen on 127.0.0.1, or say control.public: true where something else"
                " protects it"
            )


_parse_containment = choice("contained", "strict", "none", "docker")
_parse_record = choice("auto", "notify", "contained", "strict", "none", "docker")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Whether a command runs where the proxy is the only thing that it can reach."""

    replay: str = key(
        "contained",
        _parse_containment,
        "[Sandbox](sandbox.md) of `replay`: `contained` (reaches only the proxy), `strict` (no Unix sockets "
        "either), `none`, or [`docker`](docker.md).",
    )
    record: str = key(
        "none",
        _parse_record,
        "The same of `record`, or `notify` ([capture](capture.md) without a sandbox), or `auto` (`notify` for"
        " root, else `none`).",
    )
    ports: tuple[int, ...] = texts(
        parse_port,
        "Further ports than 80 and 443 at which HTTP is captured.",
        example="- 11434",
    )
    files: bool = key(
        "false",
        parse_yes,
        "`true`: isolate [files](sandbox.md#files), too, with bubblewrap.",
    )
    pipe_search_s: float = key(
        "0.2s",
        parse_duration,
        "Processor time of the search for [named pipes](sandbox-protection.md#named-pipes).",
        name="pipe_search",
    )
    image: str | None = optional(
        parse_image, "With `docker`: the image of the command; the flag `--image` wins."
    )
