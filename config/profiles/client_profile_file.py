"""A profile in a file of the user's own."""

from dataclasses import dataclass
from pathlib import Path

from ..document import MAX_BYTES
from ..errors import ConfigError
from .client_profile import parse_profile


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """The profile of a client in a file of the user's own, as it was when the configuration was read."""

    path: str
    text: str
    """Sound: it was read before."""


def read_profile(path: Path) -> str:
    """Read the text of a profile from a file.

    Raises: ValueError, whose text names the file and each place in it that is at fault.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"longer than {MAX_BYTES} bytes")
        text = data.decode()
    except FileNotFoundError:
        raise ValueError(f"no such file: {path}; expected the profile of a client") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be read: {reason}") from None
    try:
        parse_profile(text, str(path))
    except ConfigError as error:
        raise ValueError("; ".join(map(str, error.faults))) from None
    return text
