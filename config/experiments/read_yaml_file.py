"""Read a file of YAML that a command is given, with the keys of a section."""

from pathlib import Path

from ..document import Faults, parse_document
from ..errors import ConfigError, Fault
from ..key_declarations import read_section
from ..load import read, unreadable


def read_given[T](path: Path, section: type[T], expected: str) -> T:
    """Read it.

    expected: what to say of a file that holds nothing.
    Raises: ConfigError with every fault.
    """
    try:
        text = read(path).decode()
    except UnicodeDecodeError:
        raise ConfigError((Fault(str(path), "", "not UTF-8; save the file as UTF-8"),)) from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    faults = Faults(str(path), path.parent)
    value = parse_document(text, faults)
    if value is None:
        faults.raise_any()
        raise ConfigError((Fault(str(path), "", expected),))
    found = read_section(section, value)
    faults.raise_any()
    return found
