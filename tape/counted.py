"""A number with its noun."""


def counted(number: int, noun: str, plural: str = "s", *, grouped: bool = False) -> str:
    """Give `1 answer`, `2 answers`.

    grouped: with commas between thousands.
    """
    shown = f"{number:,}" if grouped else f"{number}"
    return f"{shown} {noun}" + ("" if number == 1 else plural)
