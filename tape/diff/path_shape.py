"""The shape of a URL path: what two requests to one endpoint share, whatever ids the path contains."""


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
