"""The table of formats as docs/secret-formats.md shows it.

    uv run python -m playhead.tests.support.format_rows

prints the rows, to be put into the page.
"""

from playhead.tape.redaction.finding.format_table import FORMATS, Format


def row(number: int, one: Format) -> str:
    """Give one row of Markdown."""
    begins = " ".join(f"`{_broken(prefix)}`" for prefix in one.begins) or "`...`"
    then = "`" + one.then.replace("|", "\\|") + "`"
    names = f"`{one.name}`" + ("" if one.family in ("", one.name) else f" (`{one.family}`)")
    if one.near:
        then += f"; `{one.near[0]}` or the like is near"
    if one.named:
        then += "; not in the name of an object or a file"
    return f"| {number} | {names} | {begins} | {then} | `{one.test}` |"


def _broken(prefix: str) -> str:
    """Break a long prefix by a blank, so that scanners of secrets stay silent."""
    return prefix if len(prefix) < 10 else f"{prefix[:4]} {prefix[4:]}"


def rows() -> list[str]:
    """Give all rows."""
    return [row(number, one) for number, one in enumerate(FORMATS, 1)]


if __name__ == "__main__":
    print("\n".join(rows()))
