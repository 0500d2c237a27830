"""The programs of a run with their versions, as their requests and answers state them: agents, their SDKs, what tools ran, MCP servers."""

from dataclasses import dataclass
from enum import StrEnum

from ...tape.exchange import Exchange, Seq

_MOST = 200
_TEXT = 200
"""Characters of a version that are kept."""


class ProgramKind(StrEnum):
    """What a program is to the run."""

    CLIENT = "client"
    """It asks models."""
    SDK = "sdk"
    """Asks models for it, and says so in fields of its own."""
    TOOL = "tool"
    """A tool call ran it."""
    MCP_SERVER = "mcp server"


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its version."""

    kind: ProgramKind
    name: str
    """As it calls itself, with its version: `curl/8.5.0`."""
    tool: str = ""
    """Of what a tool ran the tool."""


class Versions:
    """Collects the programs of a run, each once."""

    def __init__(self) -> None:
        self._first: dict[Program, Seq] = {}

    @property
    def all(self) -> list[tuple[Program, Seq]]:
        """The programs, each with the seq at which it was first seen."""
        return list(self._first.items())

    def see_client(self, exchange: Exchange) -> None:
        """Note who asks a model."""
        agent = _field(exchange, b"user-agent")
        self._note(Program(ProgramKind.CLIENT, agent), exchange)
        package = _field(exchange, b"x-stainless-package-version")
        if package and package not in agent:
            language = _field(exchange, b"x-stainless-lang") or "SDK"
            self._note(Program(ProgramKind.SDK, f"{language}/{package}"), exchange)
        self._note(Program(ProgramKind.SDK, _field(exchange, b"x-goog-api-client")), exchange)

    def see_tool(self, exchange: Exchange, tool: str) -> None:
        """Note what asks for something because of a tool call."""
        self._note(Program(ProgramKind.TOOL, _field(exchange, b"user-agent"), tool), exchange)

    def see_server(self, exchange: Exchange, name: str) -> None:
        """Note an MCP server.

        name: its name and version.
        """
        self._note(Program(ProgramKind.MCP_SERVER, name[:_TEXT]), exchange)

    def _note(self, program: Program, exchange: Exchange) -> None:
        if program.name and len(self._first) < _MOST:
            self._first.setdefault(program, exchange.seq)


def _field(exchange: Exchange, name: bytes) -> str:
    value = exchange.request.header(name) or b""
    return value.decode("utf-8", "backslashreplace")[:_TEXT]
