"""A run's row in the run list: id, mode, status, labels and where it is archived."""

from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ...tape.exchange import RunId
from ...tape.records.codec import BadRecord, pack_map, unpack
from ...tape.records.events import EXPLORED


class RunStatus(StrEnum):
    """Whether a run has ended, and how."""

    OPEN = "open"
    SEALED = "sealed"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that writes a run."""

    pid: int
    started: float
    """Its start time, seconds since the epoch; tells a recycled pid."""
    file: str = ""
    """Name of the file that it holds; empty where none could be made."""


@dataclass(frozen=True, slots=True)
class Archived:
    """The place of a run that was moved to an archive."""

    place: str
    """The archive, as the configuration writes it."""
    batch: str
    """Name of the files that hold it."""
    id: str
    """Of the run in the archive, whatever files hold it; another host may have a run of its name."""
    events: int
    """How many it has there."""
    restored_ns: int = 0
    """When the store restored a copy of it; 0 if it has none."""


class Told(NamedTuple):
    """What people, and an agent's command, have said in a run's row."""

    agent: str = ""
    end: str = ""
    labels: tuple[str, ...] = ()


class Made(NamedTuple):
    """How a run was made."""

    resumes: bool = False
    """Whether it goes on with a run that crashed."""
    classes: bytes = b""
    """Digest of the patterns that classified its requests; empty where they are not known."""


_AS_USUAL = Made()


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run."""

    number: int
    id: RunId
    mode: str
    created_ns: int
    status: RunStatus = RunStatus.OPEN
    parent: RunId | None = None
    parent_number: int = 0
    sealed_ns: int = 0
    exchanges: int = 0
    """Highest seq; of an open run, as of now."""
    agent: str = ""
    """What could be seen of the agent: its command or address."""
    owner: Owner | None = None
    end: str = ""
    """Why it was sealed."""
    rules: bytes = b""
    """Digest of the match rules that its fingerprints were made under."""
    canonical: int = 0
    """Version of the canonical form of these; 0 where that is not known, as of an import."""
    index: int = 0
    """Number that the rows of its index stand under; 0 for the run's own."""
    stale: tuple[int, ...] = ()
    """Numbers of earlier indexes that were being played when they were replaced."""
    labels: tuple[str, ...] = ()
    """In order; what `retention.labels` goes by."""
    pinned: bool = False
    """Whether it stays whatever its age."""
    archived: Archived | None = None
    """Where it lies, once it was moved to an archive."""
    made: Made = _AS_USUAL

    @property
    def has_resumed(self) -> bool:
        """Whether it goes on with a run that crashed."""
        return self.made.resumes

    @property
    def classes(self) -> bytes:
        """Digest of the patterns that classified its requests; empty where they are not known."""
        return self.made.classes

    @property
    def is_only_in_archive(self) -> bool:
        """Whether this row is all that the store has of the run."""
        return self.archived is not None and not self.archived.restored_ns

    @property
    def is_unrecovered(self) -> bool:
        """Whether its process ended abruptly, and no process that writes has opened the store since.

        Its log has no closing event yet: the next such process recovers the run.
        """
        return self.status is RunStatus.RECOVERED and not self.sealed_ns

    @property
    def is_explored(self) -> bool:
        """Whether it is a tape that `playhead explore` kept: it says what an agent was answered, and nothing was sent for it."""
        return self.agent == self.end == EXPLORED

    @property
    def is_tape(self) -> bool:
        """Whether it has answers of its own, which can be played: it is a recording, or goes on with one that crashed."""
        return self.has_resumed or (self.mode == "record" and self.parent is None)

    @property
    def index_number(self) -> int:
        """Number that the rows of its index stand under."""
        return self.index or self.number

    def encode(self) -> bytes:
        """Pack for the `runs` table."""
        return pack_map(
            {
                "id": self.id,
                "mode": self.mode,
                "created_ns": self.created_ns,
                "status": self.status.value,
                "parent": self.parent,
                "parent_number": self.parent_number,
                "sealed_ns": self.sealed_ns,
                "exchanges": self.exchanges,
                "agent": self.agent,
                "owner": (self.owner.pid, self.owner.started) if self.owner else None,
                "owner_file": self.owner.file if self.owner else "",
                "end": self.end,
                "rules": self.rules,
                "canonical": self.canonical,
                "index": self.index,
                "stale": self.stale,
                "labels": self.labels,
                "pinned": self.pinned,
                "archived": astuple(self.archived) if self.archived else None,
                "resumes": self.has_resumed,
                "classes": self.classes,
            }
        )

    @classmethod
    def decode(cls, number: int, data: bytes) -> "RunInfo":
        """Unpack a row of the `runs` table.

        Raises: BadRecord.
        """
        value: Any = unpack(data)
        try:
            owner = value["owner"]
            archived = value["archived"]
            return cls(
                number=number,
                id=RunId(value["id"]),
                mode=value["mode"],
                created_ns=value["created_ns"],
                status=RunStatus(value["status"]),
                parent=RunId(value["parent"]) if value["parent"] else None,
                parent_number=value["parent_number"],
                sealed_ns=value["sealed_ns"],
                exchanges=value["exchanges"],
                agent=value["agent"],
                owner=Owner(owner[0], owner[1], value["owner_file"]) if owner else None,
                end=value["end"],
                rules=value["rules"],
                canonical=value["canonical"],
                index=value["index"],
                stale=tuple(value["stale"]),
                labels=tuple(value["labels"]),
                pinned=value["pinned"],
                archived=Archived(*archived) if archived else None,
                made=Made(
                    value.get("resumes", bool(value["parent"] and value["rules"])),
                    value.get("classes", b""),
                ),
            )
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise BadRecord(f"not a run: {error!r}") from error

    def ended(self, status: RunStatus, at_ns: int, exchanges: int, end: str) -> "RunInfo":
        """Give the run as ended."""
        return replace(self, status=status, sealed_ns=at_ns, exchanges=exchanges, end=end)


def began(info: RunInfo) -> tuple[int, int]:
    """Give what orders runs by when they began; an imported one may be older than those with lower numbers."""
    return info.created_ns, info.number
