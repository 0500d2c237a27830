"""Where the command of a run was, in its receipt: its sandbox, its clock and randomness, and what the run rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....tape.counted import counted
from ....tape.records.events import Event, EventKind
from ..safe_terminal_text import WIDTH, plain, titled_rows

OPEN_PIPES = "named pipes that could not be closed"
_LEFT_OPEN = (
    ("pipes_open", OPEN_PIPES),
    ("pipes_unsearched", "folders that were not searched for named pipes"),
    ("pipes_used", "named pipes that were made or written to while the command ran"),
    ("sockets", "path sockets within reach"),
)
"""Keys of `sandbox` under which ways out are listed, and their names."""
_UNREAD = "attempts to leave could not be read from packets here"
_RAN = 12
"""Programs that ran again that are shown."""


@dataclass(slots=True)
class Surroundings:
    """Where the command of one run was."""

    contained: bool = False
    sandbox: dict[str, Any] | None = None
    """What was seen of the sandbox; None where there was none."""
    determinism: dict[str, Any] | None = None
    """What was seen of the command's clock and randomness; None where they were its own."""
    changed: list[dict[str, str]] = field(default_factory=list)
    """What the run rests on (store, configuration, Playhead itself) and was not as before when its command had ended:
    `path`, and `what` in words."""

    def take(self, event: Event) -> None:
        """Take in an event of the run's log."""
        if event.kind is EventKind.NOTED:
            data = event.data
            self.contained = data.get("contained", self.contained)
            self.sandbox = data.get("sandbox", self.sandbox)
            self.determinism = data.get("determinism", self.determinism)
            self.changed += data.get("changed", ())

    def seen(self, key: str) -> Sequence[Any]:
        """Give what was seen of the sandbox under a key; nothing where there was none."""
        rows: Sequence[Any] = (self.sandbox or {}).get(key, ())
        return rows

    @property
    def contained_but_for(self) -> list[str]:
        """The ways out of the sandbox that nobody could close or look for; empty where it is plainly contained, or there was none."""
        told = self.sandbox if self.contained else None
        return [said for key, said in _LEFT_OPEN if (told or {}).get(key)]

    @property
    def packets_out(self) -> int:
        """How many packets left the sandbox by a device that should not be there."""
        counters = (self.sandbox or {}).get("counters", {})
        return int(counters.get("packets_out", 0))

    @property
    def reached_services(self) -> bool:
        """Whether the command connected to a local service that it was let reach."""
        return any(row["connections"] for row in self.seen("services"))

    @property
    def has_preload(self) -> bool:
        """Whether programs of the command had the preload."""
        return bool(self.determinism and self.determinism["preloaded"])

    @property
    def clock(self) -> str:
        """How much of the clock and randomness was repeated: `live`, `in part` or `full`."""
        told = self.determinism
        if told is None or told["level"] != "full":
            return "live"
        if not told["preloaded"] or any(
            told.get(key)
            for key in (
                *("missing", "uncovered", "exhausted"),
                *("kernel_randomness", "sources", "problems"),
            )
        ):
            return "in part"
        return "full"

    def to_json(self) -> dict[str, Any]:
        """Give the keys of a receipt."""
        return {
            "contained": self.contained,
            "contained_but_for": self.contained_but_for,
            "changed": self.changed,
            "sandbox": self.sandbox,
            "determinism": self.determinism,
        }

    def ran_again(self) -> list[str]:
        """Say which programs a replay has run again: a proxy plays what they ask, and not what they do."""
        found = self.seen("programs") or ()
        if not found:
            return []
        told = ", ".join(f"{row['program']} ({row['count']})" for row in found[:_RAN])
        more = f" and {len(found) - _RAN} more" if len(found) > _RAN else ""
        return [f"local programs that ran again: {plain(told, 4 * WIDTH)}{more}"]

    def services(self) -> list[str]:
        """Name the local services that the command was let reach."""
        return [_service(row) for row in self.seen("services")]

    def changed_lines(self) -> list[str]:
        """Say what the run rests on and was changed."""
        rows = [f"{row['path']}: {row['what']}" for row in self.changed]
        return titled_rows("changed while the command ran", rows)

    def lines(self) -> list[str]:
        """Show what was seen of the sandbox, of the clock and of randomness."""
        return [*self._sandbox_lines(), *_determinism_lines(self.determinism)]

    def _sandbox_lines(self) -> list[str]:
        asked = [f"{row['name']} {row['type']}" for row in self.seen("names")]
        lines = []
        if empty := ((self.sandbox or {}).get("files") or {}).get("empty"):
            lines.append(
                f"empty to the command, and its files there are gone: {plain(', '.join(empty))}"
            )
        lines += titled_rows("names asked of DNS, answered with made-up addresses", asked)
        lines += titled_rows(
            "refused on loopback, as nothing listens there in the sandbox",
            [
                f"{row['target']} {counted(row['count'], 'time')}"
                f"{f' by {row["process"]}' if row['process'] else ''}"
                for row in self.seen("refused")
            ],
        )
        lines += titled_rows(
            "path sockets of programs outside, within reach (--sandbox strict closes them)",
            list(self.seen("sockets")),
        )
        lines += titled_rows(
            "named pipes within reach: too many to be closed (remove them, or work in another folder)",
            list(self.seen("pipes_open")),
        )
        if unsearched := list(self.seen("pipes_unsearched")):
            more = " and further folders" if len(unsearched) > 1 else ""
            hide = "" if self.seen("files") else "; --sandbox-files hides them"
            lines.append(
                f"not searched for named pipes: {plain(unsearched[0])}{more}; by one there a command could hand data to a program"
                f" outside (`sandbox.pipe_search`, 0.2s by default, searches longer, as 5s{hide})"
            )
        lines += titled_rows(
            "named pipes that were made or written to while the command ran",
            list(self.seen("pipes_used")),
        )
        return lines

    def containment(self, live: int, sandboxed: int, *, branch: bool, by: str) -> str:
        """Say whether anything left the machine.

        live, sandboxed: requests that were sent out as declared.
        by: what let out those of a run that is no branch.
        """
        told = self.sandbox
        if not self.contained or told is None:
            return "not contained (no sandbox)"
        kind = "contained, strict" if told["strict"] else "contained"
        kind += ", files too" if told.get("files") else ""
        count = counted(told["counters"]["packets_out"], "packet")
        unread = "" if told.get("tapped", True) else f", {_UNREAD}"
        if self.contained_but_for:
            unread += f"; not plainly contained: {', '.join(self.contained_but_for)}"
        if branch and (live or sandboxed):
            went = f"{counted(live, 'request')} went live, {counted(sandboxed, 'request')} to a sandbox"
            return f"{kind}: {count} left past the proxy, {went}, as declared{unread}"
        if live:
            sent = counted(live, "request")
            return f"{kind}: {count} left past the proxy, {sent} sent out {by}{unread}"
        return f"{kind}: {count} left the machine{unread}"


def _service(row: Mapping[str, Any]) -> str:
    failed = f", {row['failed']} in vain" if row["failed"] else ""
    return (
        f"{row['service']}: {row['reason']} ({counted(row['connections'], 'connection')}{failed})"
    )


def _determinism_lines(told: Mapping[str, Any] | None) -> list[str]:
    """Show what was seen of the command's clock and randomness."""
    if told is None:
        return []
    count = f"{told['preloaded']} of {counted(told['processes'], 'process', 'es')}"
    missing = told.get("missing", "")
    if told["level"] == "off":
        return [plain(f"determinism off: {missing}", 2 * WIDTH)]
    short = ", their sleeps kept short" if told.get("sleeps") == "short" else ""
    lines = [f"determinism {told['level']}: {count} with the preload{short}"]
    lines += titled_rows("determinism is not whole", [missing] if missing else [])
    lines += titled_rows("without the preload", told["uncovered"])
    lines += titled_rows("looked at the clock more often than recorded", told["exhausted"])
    lines += titled_rows(
        "drew randomness of their own, as they may speak TLS", told.get("kernel_randomness", ())
    )
    lines += titled_rows("used, and not the same again", told.get("sources", ()))
    if told.get("libc") and told["uncovered"]:
        lines += titled_rows("programs other than Python and Node are not covered", [told["libc"]])
    return lines + titled_rows("failed in the preload", told["problems"])
