"""What is kept of the folder that a command works in, and on what a replay works."""

from dataclasses import dataclass

from ..keys import key
from ..values import Integer, choice, parse_yes


@dataclass(frozen=True, slots=True)
class Files:
    """What is kept of the folder that a command works in, and on what a replay works."""

    replay: str = key(
        "auto",
        choice("auto", "overlay", "copy", "in-place"),
        "The folder on which `playhead replay` works: `overlay` over the working folder, `copy` of it, the folder itself (`in-place`), or"
        " `auto`: an overlay, a copy if that is needed or costs no more.",
    )
    save: bool = key(
        "false",
        parse_yes,
        "Whether `playhead record` saves the contents of the working folder, so that a replay has it as it was.",
    )
    transaction: bool = key(
        "false",
        parse_yes,
        "Whether `playhead record` makes a savepoint of the folder before each effect; saves contents, too.",
    )
    keep_writes: bool = key(
        "false",
        parse_yes,
        "Whether files that the command of a replay has written are put into the working folder when it has ended.",
    )
    max_file_mib: int = key("16", Integer(1, 1024), "Contents of larger files are not saved (MiB).")
    max_mib: int = key("512", Integer(1, 1 << 20), "How much content is saved of one folder (MiB).")
