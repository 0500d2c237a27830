"""The documentation says what the code does: every command, flag, code, key, error and link.

The keys of the configuration are checked by tests/config/test_key_declarations_reference.py, hosts of package registries by
tests/test_architecture.py.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
import yaml

import playhead
from playhead import PlayheadError
from playhead.addons.run import process_counters as counters
from playhead.addons.run.pending_approvals import ApprovalError
from playhead.config import Config, Inject, loads
from playhead.proxy import cli, errors
from playhead.proxy.command_line.json_output_schemas import make_schema
from playhead.proxy.control.handlers import openapi
from playhead.proxy.control.handlers.metrics import METRICS
from playhead.proxy.control.handlers.route_table import make_table
from playhead.proxy.determinism.preload_report import Report
from playhead.proxy.doctor import diagnose as doctor
from playhead.proxy.processes.client_processes import ForeignSocket
from playhead.proxy.sandbox.filesystem.bubblewrap import Files
from playhead.proxy.sandbox.network.listeners import Service
from playhead.proxy.sandbox.network.local_services import Use
from playhead.proxy.trust.receipt_signature import sign
from playhead.store import lmdb_keys as layout
from playhead.store.tables.run_info import RunStatus
from playhead.tape.canonical.canonical_request import DEFAULT_IGNORE
from playhead.tape.dialects import DIALECTS, Finish
from playhead.tape.diff.divergence_types import (
    Cause,
    Dependence,
    Difference,
    Divergence,
    DivergenceKind,
    Origin,
)
from playhead.tape.exchange import (
    Chunk,
    Close,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Fingerprint,
    Gone,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    Repeat,
    RepeatKind,
    Request,
    RequestClass,
    Response,
    Seq,
    Spilled,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.exit_codes import ExitCode
from playhead.tape.headers.shipped_lists import (
    COOKIE_NOISE,
    DIGESTS,
    HOSTS_OF_MEMBERS,
    KEYS_OF_EFFECTS,
    NOISE,
    NOISE_FAMILIES,
    REPORTED,
)
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tape.records import events
from playhead.tests.support import demo_picture
from playhead.timeline import Receipt, render_receipt
from playhead.timeline.reading.contract_row import ContractRow
from playhead.timeline.reading.exchange_json import body_json, exchange_json
from playhead.timeline.reading.inference import Inference
from playhead.timeline.receipts import receipt
from playhead.timeline.receipts.answers.matches import OptIn
from playhead.timeline.receipts.answers.profile_rows import ProfileRow
from playhead.timeline.receipts.branch import BranchAccount
from playhead.timeline.receipts.command.command_end import CommandAccount, CommandEnd
from playhead.timeline.receipts.command.surroundings import Surroundings
from playhead.timeline.receipts.effects import Effect
from playhead.timeline.receipts.exchange_rows import _row
from playhead.timeline.receipts.interventions.gates import GateRow
from playhead.timeline.receipts.interventions.injected import InjectedRow
from playhead.timeline.receipts.interventions.limits import LimitsRow
from playhead.timeline.receipts.resume import ResumeAccount

ROOT = Path(playhead.__file__).resolve().parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])
}
README = PAGES["README.md"]
COMMANDS = "\n## \n".join(
    PAGES[f"docs/{name}.md"]
    for name in ("commands", "commands-run", "commands-look", "commands-rules", "commands-store")
)
"""The pages of the commands; the first has the flags that many share."""
FILES = {
    name: (ROOT / name).read_text("utf-8")
    for name in (
        "Dockerfile",
        "compose.yaml",
        ".dockerignore",
        "docs/playhead.svg",
        "docs/demo.svg",
    )
}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def code(text: str) -> set[str]:
    """Everything a page sets as code inside a line."""
    return set(_CODE.findall(_FENCE.sub("", text)))


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next of the same level."""
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"no section {heading!r}"
    return found[1]


def first_column(text: str) -> set[str]:
    """The names in the first column of a page's tables."""
    return {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in _CODE.findall(line.split("|")[1])
    }


# ---- commands ----------------------------------------------------------------------------------------

NAMES = sorted(cli.cli.commands)


def _flags(command: click.Command) -> Iterator[str]:
    yield from ("-h", "--help")  # made when it is first asked for, for whoever asks then
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from parameter.opts


SHARED_LINE = "[Shared](commands.md#shared-flags): "
SHARED = [
    set(_CODE.findall(line.split("|")[1]))
    for line in section(COMMANDS, "Shared flags").splitlines()
    if line.startswith("| `")
]


def _shared(described: str) -> Iterator[str]:
    """Give the flags, by all their names, that a command shares with others."""
    for paragraph in described.split("\n\n"):
        if paragraph.startswith(SHARED_LINE):
            for name in re.findall(r"`(--?\w[\w-]*)`", paragraph.partition(". ")[0]):
                (names,) = [names for names in SHARED if name in names]
                yield from names


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_flag_is_documented(name: str) -> None:
    """Each flag has a row in the section of its command, or is listed there as shared; no other flag is."""
    described = section(COMMANDS, f"`playhead {name}`")
    own, shared = first_column(described), set(_shared(described))
    flags = {name for name in own if name.startswith("-")} | shared | {"-h", "--help"}
    assert flags == set(_flags(cli.cli.commands[name]))


def test_every_shared_flag_is_shared() -> None:
    """A row that no command refers to says nothing."""
    used = {
        name for command in NAMES for name in _shared(section(COMMANDS, f"`playhead {command}`"))
    }
    assert set().union(*SHARED) == used


def test_the_flags_before_a_command_are_documented() -> None:
    """They stand above the first section."""
    assert first_column(COMMANDS.partition("\n## ")[0]) == set(_flags(cli.cli))


def test_no_command_is_documented_that_is_none() -> None:
    """A page may name what there is."""
    documented = re.findall(r"^## `playhead (\w+)`$", COMMANDS, re.MULTILINE)
    assert sorted(documented) == NAMES
    for page, text in PAGES.items():
        # `playhead` before a word, where commands are shown: in fences and as code.
        shown = [part for _, part in _FENCE.findall(text)] + list(code(text))
        named = {
            word
            for part in shown
            for word in re.findall(r"(?:^|uv run |\$ )playhead ([a-z]+)\b", part, re.MULTILINE)
        }
        assert named <= set(NAMES), page


def test_every_exit_code_is_documented() -> None:
    """In the page, and those of a replay in the README too."""
    replays = {code for code in ExitCode if code.receipt}
    table = section(COMMANDS, "Exit codes")
    assert {int(row) for row in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == set(ExitCode)
    told = re.findall(r"^\| (\d+) \|", section(README, "Exit codes"), re.MULTILINE)
    assert {int(row) for row in told} == replays | {ExitCode.USAGE}


def test_the_order_of_exit_codes_is_the_one_that_holds() -> None:
    """Of several the first wins, as both pages say."""
    order = re.compile(r"125,\s123,\s121,\s122")
    assert order.search(README)
    assert order.search(COMMANDS)
    made = Receipt("r@1", "r", "playback", "sealed")
    made.counts["unused"] = 1
    found = [receipt.exit_code(made)]
    made.parts.requests.total = 1
    made.egress.append({})
    found.append(receipt.exit_code(made))
    made.egress.clear()
    made.divergences.append({})
    found.append(receipt.exit_code(made))
    made.divergences.clear()
    found.append(receipt.exit_code(made))
    assert found == [125, 123, 121, 122]


def test_every_fault_on_purpose_is_documented() -> None:
    """Each word of `inject`, in its page."""
    assert {*Inject} <= first_column(PAGES["docs/faults.md"])


def test_every_state_of_a_client_and_a_run_is_documented() -> None:
    """What `doctor` and `runs` print."""
    known = code(COMMANDS)
    assert {status.value for status in doctor.Status} <= known
    assert {status.value for status in RunStatus} <= known
    assert {field.name for field in (*fields(doctor.Finding), *fields(doctor.Cell))} <= known
    assert {answer.value for answer in doctor.Answer} <= known


# ---- JSON --------------------------------------------------------------------------------------------

REQUEST = Request("POST", "https", "api.example.com", 443, "/x", "HTTP/1.1", (), b"body")
EXCHANGE = Exchange(
    seq=Seq(1),
    request_class=RequestClass.EFFECT,
    verdict=VerdictKind.RECORDED,
    reason="mode record",
    request=REQUEST,
    started_ns=1,
    end_us=2,
    fingerprint=Fingerprint(bytes(16)),
    response=Response(200, b"OK", "HTTP/1.1", (), b"\xff", 1, (Chunk(1, 1),)),
    fault=Fault(FaultKind.CUT, Phase.BODY, RedactedText("closed"), 2),
    gone=Gone(1, 0, True),
    websocket=WebSocketSummary(
        2, 5, Close(3, True, 1000, RedactedText(""), (1000, RedactedText("")))
    ),
    repeat=Repeat(Seq(1), RepeatKind.SAFE_RETRY, unseen=True),
)
SPILLED = replace(EXCHANGE, request=replace(REQUEST, spilled=Spilled(bytes(32), 9, bytes(32))))
MESSAGES = (
    Message(1, True, MessageKind.TEXT, b"text"),
    Message(2, False, MessageKind.BINARY, b"\xff"),
)


def keys(value: Any) -> Iterator[str]:
    """Every key of a JSON document, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


_VIOLATION = {"what": "request", "place": "$", "expected": "integer", "found": "1.5"}
CONTRACT = ContractRow(1, "request", "POST https://a.test/", True, False, 1, [_VIOLATION], [])


BRANCHED = BranchAccount(
    {
        "at": 1,
        "changes": ["answer"],
        "live": [["inference", "a.test", "x"]],
        "routes": [["https://a.test", "http://b.test:80", "x"]],
        "answers": ["https://c.test"],
    },
    hypothetical=[{"seq": 1, "method": "GET", "url": "http://h/", "in_place_of": 1}],
    sandboxed=[
        dict.fromkeys(("seq", "method", "url", "request_class", "sandbox_place", "reason"), "")
    ],
)


RECEIPT_JSON = PAGES["docs/receipt-json.md"]
SCHEMAS = json.dumps([make_schema(name) for name in ("receipt", "effects", "show")])
"""With the descriptions that `playhead schema` prints."""
EXPLAINED = set(re.findall(r"\w+", SCHEMAS))


def _receipt() -> Receipt:
    made = Receipt("r@1", "r", "playback", "sealed")
    parts = made.parts
    parts.requests.total = 1
    made.effects.append(Effect(1, "POST", "https://api.example.com/", "", "upstream", "200"))
    difference = Difference("method", "POST", "GET")
    origin = Origin(Seq(1), Seq(1), "body")
    differing = Divergence(
        DivergenceKind.CHANGED,
        Seq(1),
        "GET",
        "http://h/",
        Seq(1),
        (difference,),
        "x",
        Dependence(Seq(1), "path", "body", "x"),
        Cause("path", origin, origin),
    )
    parts.divergences.root = differing.to_json()
    made.divergences.append(parts.divergences.root)
    # Rows that come out of events as they were written.
    foreign = parts.past_proxy.foreign
    foreign.append({field.name: 0 for field in fields(ForeignSocket)} | {"first_seen": 0})
    del foreign[0]["first_seen"]
    row = {"seq": 1, "method": "GET", "url": "http://h/"}
    made.unused.append(row)
    made.live.append({**row, "request_class": "read"})
    made.refused.append({**row, "reason": "not on the tape"})
    made.attempts.append(
        dict.fromkeys(("kind", "target", "count", "recorded", "differs", "process", "detail"), 1)
    )
    made.faults.append({"seq": 1, "kind": "cut", "phase": "body", "text": "closed"})
    made.hints.append({"key": "live", "rule": "GET http://h/", "text": "x"})
    told = re.search(r"^ {4}egress +([a-z, ]+?)  ", events.__doc__ or "", re.MULTILINE)
    assert told is not None
    made.gates.append(GateRow(1, "POST", "https://a.test/", "0", "held"))
    made.injected.append(InjectedRow(1, "what if", "reset", 1, 0))
    parts.contracts.rows.append(CONTRACT)
    parts.branch = BRANCHED
    unknown = dict.fromkeys(("run", "seq", "method", "url", "became", "asked_as"), "")
    parts.resume = ResumeAccount("r", unknown={("r", 1): unknown})
    made.model_drift.append(OptIn("m=n", 1, [1]))
    parts.matches.profiles.rows["a"] = ProfileRow("a", 1)
    parts.limits.stopped = {"by": "alice", "pid": 1, "reason": "x", "at_ns": 1}
    limits = LimitsRow(dict.fromkeys(("calls", "tokens", "usd", "repeats")))
    parts.limits.row = limits
    limits.reached.append({"limit": "calls", "seq": 1, "reason": "x", "at_ns": 1})
    made.drifted.append({"kind": "drifted", "seq": 1, "tape_seq": 1, "what": "no key"})
    made.egress.append(dict.fromkeys(told[1].split(", "), ""))
    parts.surroundings.sandbox = {
        "strict": False,
        "files": asdict(Files((), (), (), "/")),
        "image": "",
        "counters": dict.fromkeys(
            ("packets_out", "packets_inside", "tcp_opened", "tcp_failed", "udp_sent"), 0
        ),
        "tapped": True,
        "attempts_omitted": 0,
        "names": [{"name": "a.test", "type": "A", "count": 1}],
        "names_omitted": 0,
        "refused": [{"target": "tcp://127.0.0.1:1", "process": "", "count": 1}],
        "programs": [{"program": "git", "count": 1}],
        "services": [asdict(Use(Service("127.0.0.1", 1), "x"))],
        "sockets": [],
        "copied": [],
        "read_only": [],
        "pipes_unsearched": [],
        "pipes_open": [],
        "pipes_used": [],
        "landlock": True,
        "sockets_watched": True,
        "sockets_used": [{"path": "/x", "process": "x", "count": 1}],
    }
    made.changed.append({"path": "/x", "what": "x"})
    parts.surroundings.determinism = {
        "level": "full",
        "missing": "",
        "libc": "",
        "sleeps": "real",
        **Report().to_json(),
    }
    return made


def test_every_key_of_a_receipt_is_documented() -> None:
    """By the page or the schema, those at the top by the page; and nothing else is called a key."""
    document = sign(_receipt().to_json(), bytes(32))
    page = RECEIPT_JSON
    assert set(keys(document)) - code(page) - EXPLAINED == set()
    assert set(document) <= code(PAGES["docs/receipt-json.md"])
    assert first_column(page) - set(keys(document)) == set()


def test_every_key_of_an_effect_is_documented() -> None:
    """Of one with everything; what a text or bytes are called, too."""
    made = Effect(1, "POST", "https://api.example.com/", "", "upstream", "200")
    row = made.to_json()
    row |= {**body_json(REQUEST, 9), **body_json(SPILLED.request, 9), "body_base64": ""}
    assert set(row) <= code(section(PAGES["docs/effects.md"], "The ledger"))
    assert set(row) <= EXPLAINED


def test_every_dialect_is_documented() -> None:
    """In the list, in its order or another."""
    listed = first_column(section(PAGES["docs/dialects.md"], "The list"))
    assert listed == {dialect.name for dialect in DIALECTS}
    assert {*Finish} <= code(PAGES["docs/dialects.md"])


def test_every_kind_in_a_receipt_is_documented() -> None:
    """Divergences, faults and how far they had come."""
    known = code(RECEIPT_JSON) | EXPLAINED
    for kinds in (DivergenceKind, FaultKind, Phase):
        assert {kind.value for kind in kinds} <= known, kinds


def test_every_key_of_an_exchange_is_documented() -> None:
    """One with everything an exchange may hold; and of a run's rows."""
    page = PAGES["docs/exchange.md"]
    document = exchange_json(EXCHANGE, MESSAGES, [CONTRACT])
    assert document["request"]["body"] == "body"
    assert "body_base64" in document["response"]
    asked = {"seq": 1, "request_class": "read", "method": "GET", "url": ""}
    known = set(keys(document)) | set(_row(asked, "", ""))
    known |= set(keys(exchange_json(SPILLED)))
    known |= {field.name for field in fields(Inference)}
    assert known <= EXPLAINED
    assert {*exchange_json(SPILLED)} | {*_row(asked, "", "")} <= code(page)
    values = {*RequestClass, *VerdictKind, *MessageKind, *Ending, *RepeatKind} - {VerdictKind.HELD}
    assert {value.value for value in values if value.value not in SCHEMAS} <= code(page)


def test_every_key_of_the_run_list_is_documented() -> None:
    """`runs --json`; its keys stand in the command."""
    source = (ROOT / "proxy" / "commands" / "inspect.py").read_text()
    made = re.findall(r'^ +"(\w+)": run\.', source, re.MULTILINE)
    assert made
    assert set(made) <= code(section(COMMANDS, "`playhead runs`"))


# ---- errors ------------------------------------------------------------------------------------------


def _classes(base: type[PlayheadError]) -> Iterator[type[PlayheadError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _classes(kind)


def test_every_error_class_is_documented() -> None:
    """Each has a row that says when and what to do."""
    assert {errors.EngineError, ApprovalError} <= set(_classes(PlayheadError))
    # Others' tests may have made classes of their own.
    ours = {
        kind.__name__ for kind in _classes(PlayheadError) if ".tests." not in f".{kind.__module__}."
    }
    assert first_column(PAGES["docs/errors.md"]) == ours


def test_the_status_of_a_refusal_is_documented() -> None:
    """An agent's author will look for it."""
    for page in ("docs/clients.md", "docs/errors.md"):
        assert f"HTTP {REFUSAL_STATUS}" in PAGES[page]


# ---- how it is made ----------------------------------------------------------------------------------


def test_every_table_of_the_store_is_documented() -> None:
    """In the order of the layout."""
    rows = re.findall(
        r"^\| `(\w+)` \|", section(PAGES["docs/architecture.md"], "Keys in LMDB"), re.MULTILINE
    )
    assert rows == [*layout.TABLES, *layout.OPTIONAL_TABLES]


def test_every_patch_of_the_engine_is_documented() -> None:
    """Each file of the engine that says what it replaces has a row."""
    patches = {
        path.relative_to(ROOT / "proxy" / "engine").as_posix()
        for path in (ROOT / "proxy" / "engine").rglob("*.py")
        if path.name not in ("__init__.py", "engine.py")
    }
    assert first_column(section(PAGES["docs/architecture.md"], "The engine's patches")) >= patches


def test_every_part_has_its_place() -> None:
    """The arrows name the folders, top down."""
    arrows = re.search(r"^proxy .*config(?=  )", PAGES["docs/architecture.md"], re.MULTILINE)
    assert arrows is not None
    parts = re.findall(r"\w+", arrows[0])
    assert [part for part in parts if (ROOT / part).is_dir()] == parts


def test_a_newcomer_learns_few_words() -> None:
    """At most thirty, each in a row of its own."""
    words = re.findall(
        r"^\| \*\*([\w ]+)\*\* \|", section(PAGES["docs/architecture.md"], "Words"), re.MULTILINE
    )
    assert 20 <= len(words) == len(set(words)) <= 30


def test_the_header_fields_that_do_not_count_are_documented() -> None:
    """A person who is refused an answer, or given one, wants to know why."""
    listed = {*NOISE, *DIGESTS, *KEYS_OF_EFFECTS, *(one.name for one in REPORTED)}
    families = {f"{name.decode()}*" for name in NOISE_FAMILIES} | set(COOKIE_NOISE)
    assert {name.decode() for name in listed} | families <= code(PAGES["docs/header-fields.md"])


# ---- the front door ----------------------------------------------------------------------------------


def test_the_configuration_in_the_readme_loads() -> None:
    """A person can copy it."""
    (example,) = [text for kind, text in _FENCE.findall(README) if kind == "yaml"]
    assert loads(example) != Config()


def test_the_two_commands_stand_first() -> None:
    """Before anything that needs more."""
    first = next(text for _, text in _FENCE.findall(README))
    assert re.findall(r"^uv run \w+(?: demo)?", first, re.MULTILINE) == [
        "uv run playhead demo",
        "uv run pytest",
    ]


def test_the_readme_says_which_python_is_needed() -> None:
    """As pyproject.toml and .python-version do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README
    pinned = (ROOT / ".python-version").read_text().strip()
    assert re.search(rf"`\.python-version`\ssays\s{re.escape(pinned)};", README)
    assert "demo" in project["optional-dependencies"]


STORY = (
    "$ playhead record",
    "the customer was paid twice",
    "$ playhead replay",
    "exit code 0",
    "7 served",
    "/v1/refunds",
    "client left after",
    "/v1/refunds",
    "possible duplicate of seq 4",
    "$ playhead replay",
    "agent_fixed",
    "exit code 121",
    "unexpected: GET",
    "unused: 6  POST",
)


def test_the_picture_of_the_demo_has_its_story() -> None:
    """The steps that matter, in the order in which they are printed."""
    assert "(docs/demo.svg)" in README
    place = 0
    for part in STORY:
        place = FILES["docs/demo.svg"].find(part, place)
        assert place >= 0, part
        place += len(part)


def test_the_picture_of_the_demo_is_made_and_not_drawn() -> None:
    """It is what the script draws of its own lines: whoever changes the script or the picture runs `just picture`."""
    assert (
        demo_picture.draw(demo_picture.lines_of(FILES["docs/demo.svg"])) == FILES["docs/demo.svg"]
    )


def test_the_picture_shows_no_port_or_folder_of_one_run() -> None:
    """Fixed words stand for what differs between two runs; repeated lines of the agent are left out."""
    output = (
        "1  Start\n   provider  http://127.0.0.1:45281  x\n   payments  http://127.0.0.1:44641  y\n\n"
        "\x1b[1m5  Replay\x1b[0m\n   \x1b[36m$ playhead replay double-refund-20260101-010101 --store /s -- a\x1b[0m\n"
        "   | one\n   | two\n   | three\n   GET http://127.0.0.1:44641/v1 http://127.0.0.1:45281\n"
    )
    assert list(demo_picture.shortened(demo_picture.fixed(output))) == [
        "\x1b[1m5  Replay\x1b[0m",
        "   \x1b[36m$ playhead replay refund -- a\x1b[0m",
        "   | ...",
        "   | two",
        "   | three",
        "   GET http://127.0.0.1:9002/v1 http://127.0.0.1:9001",
        "",
    ]


def test_the_readme_is_short() -> None:
    """A newcomer reads it in a few minutes; details have pages of their own."""
    assert README.count("\n") <= 150


GREEN_ALL_THE_SAME = {
    # by what a page says of it: words of the list of known limitations
    ("docs/matching.md", "signatures in URLs, with their dates and credentials"): ("X-Amz-Credential", "X-Goog-Credential", "AWSAccessKeyId", "skoid", "CloudFront"),
    ("docs/linked-values.md", "only the whole is compared"): ("in lower case or in base64",),
    ("docs/header-fields.md", "Dates, nonces and signatures do not count"): ("dates, nonces and signatures",),
    ("docs/header-fields.md", "another value is reported; that there is one"): ("values of idempotency keys",),
    ("docs/matching.md", "`extensions` do not"): ("`extensions` of GraphQL",),
    ("docs/matching.md", "Requests of class `telemetry` count by method"): ("but for method and path",),
    ("docs/matching.md", "its order is not compared"): ("gRPC whose answer began",),
    ("docs/order.md", "is therefore compared by call id"): ("results of parallel tools",),
    ("docs/linked-values.md", "ids of runs; and values in messages of a WebSocket"): ("ids of runs of two requests",),
    ("docs/header-fields.md", "Cookies that say which machine answers"): ("cookies of load balancers",),
    ("docs/websockets.md", "Frames do not count"): ("frames of its messages",),
    ("docs/fidelity.md", "which requests shared one"): ("which requests share one",),
    ("docs/receipt-attempts.md", "Hosts to which telemetry alone is sent"): ("hosts of telemetry",),
    ("docs/receipt.md", "Left out of `files` are folders"): ("`.git`",),
    ("docs/receipt-attempts.md", "those that live for less than that"): ("a tenth of a second",),
    ("docs/sandbox.md", "A name that only the replay asks for is no divergence"): ("asked of DNS",),
    ("docs/clients.md", "They are not on the tape, and are no divergence"): ("programs of the command's own",),
    ("docs/profiles.md", "compared whole"): ("profile of a client",),
}  # fmt: skip
"""What a page says that is not compared, and how the list of known limitations names it."""

LIMITATIONS = PAGES["docs/limitations.md"]
MISSED = "Known limitations of a green receipt"


def test_the_readme_leads_to_what_stays_green() -> None:
    """And to what is red without a cause of the agent's."""
    assert "docs/limitations.md#known-limitations-of-a-green-receipt" in README
    assert "docs/troubleshooting.md#a-red-replay-without-a-change" in README


@pytest.mark.parametrize(("place", "words"), GREEN_ALL_THE_SAME.items(), ids=str)
def test_what_stays_green_is_a_known_limitation(
    place: tuple[str, str], words: tuple[str, ...]
) -> None:
    """One page lists it in few words, beside the page that explains it."""
    page, said = place
    assert said in PAGES[page]
    told = " ".join(section(LIMITATIONS, MISSED).split())
    assert [one for one in words if one not in told] == []


def test_each_key_of_a_signed_url_that_is_not_compared_is_named() -> None:
    """And of the others those that say what is allowed."""
    told = section(LIMITATIONS, MISSED)
    members = {name for _, names in HOSTS_OF_MEMBERS for name in names}
    names = {name for rule in DEFAULT_IGNORE for name in rule.query} - members
    assert {name for name in names if f"`{name}`" not in told and name != name.lower()} == set()
    assert {name.lower() for name in names} <= {
        one.lower() for one in re.findall(r"`([^`]+)`", told)
    }
    assert names.isdisjoint(("X-Amz-Expires", "X-Amz-SignedHeaders", "sp", "sr"))


def test_receipts_in_the_pages_have_the_shape_of_todays() -> None:
    """Their head, their counts and their last line are what is printed now."""
    made = Receipt("refund@1", "refund", "playback", "sealed")
    made.parts.requests.total = 7
    made.counts["served"] = made.matched["exact"] = 7
    made.parts.tape.standing = "sealed"
    ended = CommandEnd(0, ("python", "-m", "playhead.examples.double_refund.agent"))
    made.parts.command = CommandAccount(ended, ended)
    made.parts.surroundings = Surroundings(
        contained=True, sandbox={"strict": False, "counters": {"packets_out": 0}}
    )
    printed = render_receipt(made).splitlines()
    for page in ("docs/receipt.md",):
        shown = next(text for _, text in _FENCE.findall(PAGES[page]) if "receipt of" in text)
        lines = shown.splitlines()
        assert lines[:4] == printed[:4], page
        assert lines[-1] == printed[-1], page


@pytest.mark.parametrize("name", ["docs/playhead.svg", "docs/demo.svg"])
def test_the_picture_can_be_read(name: str) -> None:
    """It is well-formed, says in words what it shows, loads nothing and has a ground of its own."""
    root = ElementTree.fromstring(FILES[name])
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    assert root.find(f"{space}title") is not None
    assert root.find(f"{space}desc") is not None
    assert not re.search(r"(?:href|url\()=?[\"']?(?!#)\w+:", FILES[name])
    ground = root.find(f"{space}rect")
    assert ground is not None
    assert ground.get("fill")


# ---- links and places --------------------------------------------------------------------------------


def _anchors(text: str) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", text))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Files are there, and so are the headings; from outside only https."""
    wrong = []
    for link in _LINK.findall(_FENCE.sub("", PAGES[page])):
        if "://" in link:
            if not link.startswith("https://"):
                wrong.append(link)
            continue
        name, _, anchor = link.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        inside = path.exists() and ROOT in (path, *path.parents)
        if not inside or (anchor and anchor not in _anchors(path.read_text("utf-8"))):
            wrong.append(link)
    assert wrong == []


def test_every_page_can_be_found() -> None:
    """The first page leads to each, and the README to that."""
    assert "(docs/index.md)" in README
    linked = {f"docs/{link.partition('#')[0]}" for link in _LINK.findall(PAGES["docs/index.md"])}
    assert {page for page in PAGES if page.startswith("docs/")} - {"docs/index.md"} <= linked


@pytest.mark.parametrize("name", [*PAGES, *FILES])
def test_no_path_of_a_machine_is_shown(name: str) -> None:
    """Nor of a temporary folder."""
    text = PAGES.get(name) or FILES[name]
    pattern = r"(?<![\w.])/(?:work|root|Users|home/\w+|tmp/\w|mnt|nix)/?\b"
    assert re.findall(pattern, text) == []


@pytest.mark.parametrize("page", PAGES)
def test_fences_are_closed(page: str) -> None:
    """An odd one turns the rest of a page into code."""
    assert PAGES[page].count("\n```") % 2 == 0


def test_the_changelog_is_kept() -> None:
    """Keep a Changelog: an Unreleased section comes first."""
    headings = re.findall(r"^## \[(.+?)\]", PAGES["CHANGELOG.md"], re.MULTILINE)
    assert headings[0] == "Unreleased"
    kinds = set(re.findall(r"^### (.+)$", PAGES["CHANGELOG.md"], re.MULTILINE))
    assert "Added" in kinds


# ---- containers --------------------------------------------------------------------------------------


def _instructions() -> list[list[str]]:
    text = re.sub(r"^#.*\n", "", FILES["Dockerfile"], flags=re.MULTILINE)
    return [line.split() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_what_the_dockerfile_copies_is_there() -> None:
    """Out of the clone, and not kept out by .dockerignore."""
    let_in = re.findall(r"^!(.+)$", FILES[".dockerignore"], re.MULTILINE)
    copied = []
    for instruction, *words in _instructions():
        if instruction == "COPY" and not words[0].startswith("--from="):
            copied += [word.rstrip("/") for word in words[:-1]]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
    assert sorted(copied) == sorted(let_in)


def test_the_image_holds_every_part() -> None:
    """Each package of pyproject.toml is copied."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    parts = {
        name.split(".")[1] for name in project["tool"]["setuptools"]["packages"] if "." in name
    }
    copied = {word.rstrip("/") for words in _instructions() if words[0] == "COPY" for word in words}
    assert parts <= copied
    assert set(project["project"]["license-files"]) <= copied
    assert project["project"]["readme"] in copied


def test_the_image_runs_playhead_as_somebody_else_than_root() -> None:
    """By number; the base can be chosen; nothing is copied from other people's images."""
    rows = _instructions()
    assert rows[0] == ["ARG", "BASE_IMAGE=python:3.13-slim"]
    assert [row[1] for row in rows if row[0] == "FROM"] == ["${BASE_IMAGE}"] * 2
    assert [row[1] for row in rows if row[0] == "USER"] == ["10001:10001"]
    assert [row[1:] for row in rows if row[0] == "ENTRYPOINT"] == [['["playhead"]']]
    stages = {row[3] for row in rows if row[0] == "FROM" and "AS" in row}
    sources = re.findall(r"--from=(\S+)", FILES["Dockerfile"])
    assert set(sources) <= stages
    assert not FILES["Dockerfile"].startswith("# syntax")


def _command(words: list[str]) -> dict[str, Any]:
    """Parse what a container runs as our command line does; nothing is run."""
    name, *rest = words
    context = cli.cli.commands[name].make_context(name, list(rest))
    return {"name": name, **context.params}


def test_the_image_listens_where_it_says() -> None:
    """The command line parses; its port is exposed and looked at by the health check."""
    last = re.search(r"^CMD (\[.+\])$", FILES["Dockerfile"], re.MULTILINE)
    assert last is not None
    given = _command(yaml.safe_load(last[1]))
    assert (given["name"], given["listen"], given["store"]) == ("serve", "0.0.0.0:8080", "/data")
    assert "EXPOSE 8080" in FILES["Dockerfile"]
    assert "('127.0.0.1', 8080)" in FILES["Dockerfile"]


def _compose() -> Any:
    return yaml.safe_load(FILES["compose.yaml"])


PROFILES = {"record": "record", "replay": "replay", "live": "replay"}
"""What Playhead does in each profile of compose.yaml."""


@pytest.mark.parametrize("profile", PROFILES)
def test_compose_has_all_that_a_profile_needs(profile: str) -> None:
    """The network, Playhead, an agent that waits until it is ready, and what says how it ended."""
    services = _compose()["services"]
    network, ours, agent, verdict = (
        services[name]
        for name in (f"network-{profile}", profile, f"agent-{profile}", f"verdict-{profile}")
    )
    assert [one["profiles"] for one in (network, ours, agent, verdict)] == [[profile]] * 4
    assert _command(network["command"])["name"] == "inlets"
    given = _command(ours["command"])
    assert (given["name"], given["verb"]) == ("beside", PROFILES[profile])
    assert agent["depends_on"] == {profile: {"condition": "service_healthy"}}
    assert verdict["depends_on"] == {profile: {"condition": "service_completed_successfully"}}
    assert len(services) == 4 * len(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_agent_in_compose_is_on_no_network(profile: str) -> None:
    """In its namespace there is loopback; Playhead's own network is another, and none in a replay."""
    services = _compose()["services"]
    assert services[f"network-{profile}"]["network_mode"] == "none"
    assert services[f"agent-{profile}"]["network_mode"] == f"service:network-{profile}"
    assert "networks" not in services[f"agent-{profile}"]
    assert services["replay"]["network_mode"] == "none"


def test_no_agent_in_compose_sees_a_private_key() -> None:
    """The store is Playhead's; the agent has a folder with the public files, and no right of root."""
    for name, service in _compose()["services"].items():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"][0] == "no-new-privileges:true"
        assert set(service.get("cap_add", ())) <= {"NET_ADMIN", "NET_RAW"}
        if name.startswith("agent-"):
            (volume,) = service["volumes"]
            assert (volume["source"], volume["target"]) == ("agent", "/agent")
            assert volume["volume"] == {"nocopy": True}  # nor is its image's folder taken for ours
            assert service["security_opt"][1] == "seccomp=proxy/docker/seccomp.json"
            assert service["user"] == "10002:10002"
            assert "cap_add" not in service
        else:
            assert service["read_only"] is True


def test_variables_of_compose_are_documented() -> None:
    """Each that it reads, and no other."""
    asked = set(re.findall(r"\$\{([A-Z_]+):?-", FILES["compose.yaml"]))
    told = {name for name in code(PAGES["docs/docker.md"]) if re.fullmatch(r"[A-Z]+_[A-Z]+", name)}
    assert asked == told - {"DOCKER_HOST", "NET_ADMIN", "NET_RAW"}


# ---- the control API ---------------------------------------------------------------------------------

CONTROL = PAGES["docs/control.md"]


def test_every_route_and_its_statuses_are_documented() -> None:
    """And no other route is."""
    described = first_column(section(CONTROL, "Routes"))
    routes = {f"{route.method} {route.path}" for route in make_table()}
    assert {name for name in described if " /" in name} == routes
    statuses = {
        int(status)
        for path in openapi.document(make_table())["paths"].values()
        for operation in path.values()
        for status in operation["responses"]
    }
    told = {int(row) for row in re.findall(r"^\| (\d+) \|", CONTROL, re.MULTILINE)}
    assert told == {status for status in statuses if status >= 400} | {405}


def test_every_key_of_a_run_and_of_an_error_is_documented() -> None:
    """As the control API tells them."""
    for name in ("Run", "Problem"):
        assert set(openapi.SCHEMAS[name]["properties"]) <= code(CONTROL), name
    assert set(openapi.SCHEMAS["Run"]["properties"]) <= first_column(CONTROL)


def test_every_measure_is_documented() -> None:
    """With its labels."""
    listed = first_column(section(CONTROL, "Measures"))
    assert listed == {metric.name for metric in METRICS}
    assert {label for metric in METRICS for label in metric.labels} <= code(CONTROL)
    assert {*counters._VERDICTS.values(), counters.UNDECIDED} <= code(CONTROL)
