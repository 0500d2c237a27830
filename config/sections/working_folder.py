"""What is kept of the folder that a command works in, and on what a replay works."""

from dataclasses import dataclass

from ..key_declarations import key
from ..parse_values import Integer, choice, parse_yes


@dataclass(frozen=True, slots=True)
class Files:
    """What is kept of the folder that a command works in, and on what a replay works."""

    replay: str = key(
        "auto",
        choice("auto", "overlay", "copy", "in-place"),
        "A replay's folder: an `overlay` over the working folder, a `copy`, the folder itself (`in-place`), "
        "or `auto` (overlay or copy).",
    )
    save: bool = key(
        "false",
        parse_yes,
        "Whether `record` saves the folder's contents for replays.",
    )
    transaction: bool = key(
        "false",
        parse_yes,
        "Whether `record` makes a savepoint before each effect; saves contents, too.",
    )
    keep_writes: bool = key(
        "false",
        parse_yes,
        "Whether a replay's writes are put into the working folder at the end.",
    )
    max_file_mib: int = key("16", Integer(1, 1024), "Larger files are not saved (MiB).")
    max_mib: int = key("512", Integer(1, 1 << 20), "Most content saved of one folder (MiB).")
