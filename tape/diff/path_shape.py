"""The shape of a URL path: what two requests to one endpoint share, whatever ids the path contains."""

import re


def path_shape(path: str) -> str:
    """Give a path with `*` for its ids: segments with a digit that are no version."""
    return "/".join(map(_segment, path.split("/")))


def _segment(part: str) -> str:
    if not any(char.isdigit() for char in part):
        return part
    if part[0] == "v" and part[1:2].isdigit() and len(part) <= 8:
        return part
    # Google puts the name of the call behind the id: `models/gemini-3:generateContent`.
    _, colon, verb = part.rpartition(":")
    return f"*:{verb}" if colon and verb.isalpha() else "*"


_ID = re.compile(
    r"[0-9]+|(?:[A-Za-z]{1,20}_)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?:[A-Za-z]{1,20}_)?(?=[A-Za-z]{0,40}[0-9])[0-9A-Za-z]{12,64}"
)


def id_shape(path: str) -> str:
    """Give a path with `*` for the segments that are nothing but an id: a number, a UUID, or a long mixed word.

    `charge2` is a name: what is proved of it is not proved of `charge3`.
    """
    return "/".join("*" if _ID.fullmatch(part) else part for part in path.split("/"))
