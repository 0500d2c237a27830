"""Exit codes of the commands: the one table, from which `docs/commands.md` is made (`just reference`).

`docs/extending.md` says how to add one.
"""

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """What a command ends with: its code, what the receipt of a replay says of it, and which commands give it why."""

    receipt: str
    """Empty for a code that no receipt gives."""
    meanings: tuple[tuple[str, str], ...]
    """Commands and reasons, in Markdown."""

    def __new__(cls, code: int, receipt: str = "", *meanings: tuple[str, str]) -> Self:
        """Make a row of the table."""
        made = int.__new__(cls, code)
        made._value_ = code
        made.receipt = receipt
        made.meanings = meanings
        return made

    OK = 0, "", ("all", "it worked")
    FAILED = (
        1,
        "",
        (
            "`bisect`, `explore`, `doctor`, `demo`, `verify`, `contracts`, `diff`, `runs`",
            "no answer is proved to turn a run bad; something was broken; a client that reaches the proxy distrusts it or fails; a step of the story went otherwise; a check failed,"
            " a contract was violated, two runs differ, or `--grep` or `--trace` found nothing",
        ),
    )
    USAGE = (
        2,
        "",
        (
            "all but `replay`",
            "usage, configuration or store at fault, or the proxy cannot start; of `record` also a"
            " [gap](durability.md#a-full-disk), and with `--strict` a recording that has"
            " [missed](receipt-attempts.md#gaps-of-a-recording) something, where the command ended with 0",
        ),
    )
    DIVERGED = (
        121,
        "the run diverged from the tape, or was stopped",
        (
            "`replay`",
            "the run diverged from the tape: a request was refused, stubbed or drifted, the command ended with another"
            " code than while it was recorded, or the run was stopped",
        ),
        ("`ask`, `branch`", "a request was refused, by a cap too, or the run was stopped"),
        ("`sweep`", "a cap has ended it"),
        (
            "`resume`",
            "a request was another one than the crashed run has there, a limit was reached, or the run was stopped",
        ),
    )
    UNUSED = (122, "part of the tape was not used", ("`replay`", "part of the tape was not used"))
    LEAKED = (
        123,
        "something tried to leave past the tape",
        (
            "`branch`, `replay`, `resume`",
            "something tried to leave: the guard or the kernel denied it, or a socket led past the proxy",
        ),
    )
    UNTESTABLE = (
        125,
        "nothing was tested: the agent made no request through the proxy",
        (
            "`replay`",
            "nothing was tested: usage, configuration, unknown or open run, port, no sandbox, no such command, no request"
            " made, or the replay's own process died",
        ),
        ("`branch`", "its point was never asked for, or no request was made"),
        ("`resume`", "not all that the crashed run had asked for was asked for again"),
        (
            "`branch`, `record`, `replay`, `resume`",
            "the store, the configuration or Playhead's own files [changed](sandbox-protection.md#the-proxys-own-files) while the"
            " command ran, or the receipt could not be written to the file of `--receipt`",
        ),
        (
            "`branch`, `replay`, `resume`",
            "an answer that was asked for has a part that was"
            " [not searched for secrets](secret-search.md#parts-that-are-not-searched), and so was not kept",
        ),
    )
    INTERRUPTED = (
        130,
        "",
        ("all", "Ctrl-C; of `replay` also where the receipt says another code than 123"),
    )
    NOT_READ = 141, "", ("all", "whoever read the output went away")
