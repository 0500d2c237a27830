"""A number with its noun."""


def counted(number: int, noun: str, plural: str = "s") -> str:
    """Give `1 answer`, `2 answers`."""
    return f"{number} {noun}" + ("" if number == 1 else plural)
