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

    @property
    def word(self) -> str:
        """The code's name, for people."""
        return self.name.lower().replace("_", " ")

    OK = 0, "", ("all", "success")
    FAILED = (
        1,
        "",
        (
            "`bisect`, `explore`, `doctor`, `demo`, `verify`, `contracts`, `diff`, `runs`",
            "not proved; broken; a client distrusts the proxy or fails; a step failed; damage; violations; differences; no run found",
        ),
    )
    USAGE = (
        2,
        "",
        (
            "all but `replay`",
            "usage, configuration, store, or the proxy cannot start; `record`, in place of 0: a"
            " [gap](durability.md#a-full-disk) or, with `--strict`, [missed](receipt-attempts.md#gaps-of-a-recording) requests",
        ),
    )
    DIVERGED = (
        121,
        "the run diverged from the tape, or was stopped",
        (
            "`replay`",
            "a request was refused, stubbed, drifted or [answered by you](breakpoints.md); another exit code; or stopped",
        ),
        (
            "`ask`, `branch`",
            "a request was refused or differs before the point; a cap ended it; or stopped",
        ),
        ("`sweep`", "a cap ended it"),
        ("`resume`", "a request differs from the crashed run, a limit, or stopped"),
    )
    NOT_EXHAUSTED = (
        122,
        "part of the tape was not used",
        ("`replay`", "part of the tape was not used"),
    )
    LEAKED = (
        123,
        "something tried to leave past the tape",
        (
            "`branch`, `replay`, `resume`",
            "a denied attempt to leave, or a socket past the proxy",
        ),
    )
    UNTESTABLE = (
        125,
        "nothing was tested: the agent made no request through the proxy",
        (
            "`replay`",
            "nothing was tested: usage, configuration, unknown or open run, port, sandbox, command, no request, or its own"
            " process died",
        ),
        ("`branch`", "`--at`, or anything at all, was not requested"),
        (
            "`explore`",
            "no run with a fault ended without a refusal and with a result of `--check`",
        ),
        ("`resume`", "not all of the crashed run was requested again"),
        (
            "`branch`, `record`, `replay`, `resume`",
            "store, configuration or Playhead's own files [changed](sandbox-protection.md#the-proxys-own-files), or `--receipt`"
            " could not be written",
        ),
        (
            "`branch`, `replay`, `resume`",
            "a requested answer was not kept:"
            " [not searched for secrets](secret-search.md#parts-that-are-not-searched)",
        ),
    )
    INTERRUPTED = (
        130,
        "",
        ("all", "Ctrl-C; it takes the place of a replay's other codes, but of 123"),
    )
    NOT_READ = 141, "", ("all", "the output's reader is gone")
