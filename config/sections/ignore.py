"""Volatile places: what is left out of the comparison with the tape."""

from dataclasses import dataclass, field

from ..document import Fields, Value
from ..key_declarations import texts
from ..match_pattern import Match
from ..parse_values import check_json_path, check_regex, choice, parse_field_name, parse_parameter
from ..profiles.client_profile_file import ProfileFile, read_profile
from ..profiles.shipped_profiles import shipped_profiles
from .live import PATTERN


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Volatile places of matching requests: left out of the comparison, kept in the record."""

    match: Match = field(metadata=PATTERN)
    json: tuple[str, ...] = texts(
        check_json_path,
        "Paths in a JSON body: `$`, then `.name`, `['name']`, `[3]`, `[*]` (every item) or `.*` (every member).",
    )
    header: tuple[str, ...] = texts(parse_field_name, "Names of header fields.")
    query: tuple[str, ...] = texts(parse_parameter, "Names of query parameters.")
    form: tuple[str, ...] = texts(parse_parameter, "Names of form fields.")
    regex: tuple[str, ...] = texts(
        check_regex,
        "[RE2 expressions](https://github.com/google/re2/wiki/Syntax); their match, or first group, is left "
        "out of path, query and form values, JSON strings and other texts.",
    )

    def check(self, given: Fields) -> None:
        """Note a rule without a place."""
        places = [place for name, place in given.given.items() if name != "match"]
        if given.value.is_mapping and all(place.blank for place in places):
            given.value.fault("names no place; expected one of json, header, query, form, regex")


def read_profiles(given: Fields, at: str) -> tuple[ProfileFile, ...]:
    """Read the profiles in files of the user's own."""
    return given.each(at, _read_profile)


def _read_profile(value: Value) -> ProfileFile:
    def read(text: str) -> ProfileFile:
        path = value.place(text)
        return ProfileFile(str(path), read_profile(path))

    return value.parsed(read, ProfileFile("", ""))


def parse_profile(text: str) -> str:
    """Parse the name of a shipped profile. Raises: ValueError."""
    return choice(*(profile.name for profile in shipped_profiles()))(text)
