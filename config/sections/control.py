"""The control API, and where a command runs."""

from dataclasses import dataclass, field
from pathlib import Path

from ..document import Fields
from ..keys import custom, key, optional, optional_path, read_section, ref, required_path, texts
from ..value_types import Listen
from ..values import (
    choice,
    is_loopback,
    parse_control_listen,
    parse_duration,
    parse_host,
    parse_image,
    parse_port,
    parse_yes,
)


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
        "Where it listens, `HOST:PORT`, or `off`. Port 0 takes a free one, which the commands find by themselves.",
    )
    """None: there is none."""
    token_file: Path | None = optional_path(
        "File with the bearer token, mode 0600; it is made if there is none. `null` is `<store>/private/control-token`."
    )
    tls: Tls | None = custom(
        lambda value: read_section(Tls, value),
        _NO_TLS,
        "`cert` and `key`, two PEM files. `null` is plain HTTP.",
        shown="null",
        shape=ref(Tls),
        section=Tls,
    )
    hosts: tuple[str, ...] = texts(
        parse_host,
        "Further names under which it is reached. A request for any other than these, the address itself and loopback"
        " is refused.",
        example="- playhead.internal.example.com",
    )
    public: bool = key(
        "false",
        parse_yes,
        "`true` allows an address other than loopback without TLS. Set it if something else protects it, such as a network of containers.",
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
        "Where `playhead replay` runs its command: `contained` (the proxy is the only thing that it can reach),"
        " `strict` (nor has it Unix sockets), `none`, or `docker` (in [containers](docker.md)). See"
        " [the sandbox](sandbox.md).",
    )
    record: str = key(
        "none",
        _parse_record,
        "The same for `playhead record`, and without a sandbox: `notify` ([capture](capture.md): clients that ignore the proxy are led to it, and nothing else changes), `auto` (`notify` for root, because it changes nothing at all there; else `none`).",
    )
    ports: tuple[int, ...] = texts(
        parse_port,
        "Further ports, beside 80 and 443, at which HTTP is taken to the proxy from clients that ignore it, with `notify` and"
        " in a sandbox.",
        example="- 11434",
    )
    files: bool = key(
        "false",
        parse_yes,
        "`true`: there bubblewrap makes the [file system](sandbox.md#files), too: the working folder, the system read"
        " only, an empty home.",
    )
    pipe_search_s: float = key(
        "0.2s",
        parse_duration,
        "Processor time for the search for [named pipes](sandbox-protection.md#named-pipes) around the working folder. More time covers more files.",
        name="pipe_search",
    )
    image: str | None = optional(
        parse_image, "With `docker`: the image that the command is run in. The flag `--image` wins."
    )
