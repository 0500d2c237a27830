"""The profiles that are shipped: the YAML files beside this one. They are read once a process."""

from functools import lru_cache
from pathlib import Path

from .client_profile import Profile, parse_shipped_profile
from .client_profile_file import ProfileFile

_FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def shipped_profiles() -> tuple[Profile, ...]:
    """Give all of them by name.

    Raises: ConfigError, where one is not what was shipped.
    """
    found = sorted(_FOLDER.glob("*.yaml"))
    return tuple([parse_shipped_profile(path.read_text("utf-8"), str(path)) for path in found])


@lru_cache(maxsize=16)
def find_profiles(off: tuple[str, ...], files: tuple[ProfileFile, ...] = ()) -> tuple[Profile, ...]:
    """Give those that a configuration has not turned off, and its own behind them.

    files: its own; one of them takes the place of a shipped one of its name.
    """
    own = tuple([parse_shipped_profile(one.text, one.path) for one in files])
    names = {*off, *(one.name for one in own)}
    return (*(one for one in shipped_profiles() if one.name not in names), *own)
