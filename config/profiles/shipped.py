"""The profiles that are shipped: the YAML files beside this one. They are read once a process."""

from functools import lru_cache
from pathlib import Path

from .profile import Profile, parse_shipped_profile

_FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def shipped_profiles() -> tuple[Profile, ...]:
    """Give all of them by name.

    Raises: ConfigError, where one is not what was shipped.
    """
    found = sorted(_FOLDER.glob("*.yaml"))
    return tuple([parse_shipped_profile(path.read_text("utf-8"), str(path)) for path in found])


def find_profiles(off: tuple[str, ...]) -> tuple[Profile, ...]:
    """Give those that a configuration has not turned off."""
    return tuple([one for one in shipped_profiles() if one.name not in off])
