"""The doctor: what was seen makes the finding, and real clients outside the sandbox and in it."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.proxy.doctor import probes as table
from playhead.proxy.doctor import run as doctor_run
from playhead.proxy.doctor.diagnose import (
    Answer,
    Cell,
    Clocks,
    Finding,
    ProbeResult,
    Seen,
    Status,
    diagnose,
    find_time,
    render,
    render_json,
)
from playhead.proxy.doctor.probes import PRINTED, Probe, probes
from playhead.proxy.doctor.run_probe import Outcome
from playhead.proxy.engine.event_loop import new_event_loop
from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.sandbox import Sandbox
from playhead.tests.support.needs import has, need

PROBE = Probe(
    "a client",
    True,
    ("client",),
    "https://c.test/doctor",
    clock=PRINTED,
    if_bypassed="go through",
    if_untrusted="trust it",
)
CLOCKS = Clocks(1_700_000_000, 1_700_003_600)
YES = Cell(Answer.YES)
ASKED = Seen(reached=True, asked=True)
DIRECT = Seen(direct=True, direct_asked=True)


def result(exit_code: int | None = 0, seen: Seen = ASKED, output: str = "") -> ProbeResult:
    return ProbeResult(Outcome(exit_code, output), seen)


def found(
    unsandboxed: ProbeResult | None, sandboxed: ProbeResult | None = None, probe: Probe = PROBE
) -> Finding:
    return diagnose(probe, unsandboxed, sandboxed or result(), CLOCKS)


@pytest.mark.parametrize(
    ("exit_code", "seen", "output", "status", "proxied", "trusted", "advice"),
    [
        # what the proxy read was proxied and trusted
        (0, ASKED, "", Status.OK, "yes", "yes", ""),
        (1, ASKED, "JSONDecodeError", Status.FAILED, "yes", "yes", "could not use the answer"),
        (None, ASKED, "", Status.FAILED, "yes", "yes", "could not use the answer"),
        # what came to the origin went past it
        (0, DIRECT, "", Status.BYPASSED, "no", "yes", "go through"),
        (1, Seen(direct=True), "certificate", Status.BYPASSED, "no", "no", "go through"),
        (6, Seen(), "curl: (6) Could not resolve host: x", Status.BYPASSED, "no", "unknown", "go"),
        (1, Seen(), "getaddrinfo ENOTFOUND x", Status.BYPASSED, "no", "unknown", "go"),
        # a tunnel without a request
        (60, Seen(reached=True), "self-signed", Status.UNTRUSTED, "yes", "no", "trust it"),
        (1, Seen(reached=True), "PKIX path", Status.UNTRUSTED, "yes", "no", "trust it"),
        (1, Seen(reached=True, refused=True), "", Status.UNTRUSTED, "yes", "no", "trust it"),
        (1, Seen(reached=True), "boom", Status.FAILED, "yes", "unknown", ""),
        # nobody knows
        (7, Seen(), "connection refused", Status.FAILED, "unknown", "unknown", ""),
        (None, Seen(), "", Status.FAILED, "unknown", "unknown", ""),
        (0, Seen(), "certificate", Status.FAILED, "unknown", "unknown", ""),
    ],
)
def test_finding_follows_from_what_was_seen(
    exit_code: int | None,
    seen: Seen,
    output: str,
    status: Status,
    proxied: str,
    trusted: str,
    advice: str,
) -> None:
    """One row a case; what is not known has its reason."""
    finding = found(result(exit_code, seen, output))
    assert (finding.status, finding.proxied.answer, finding.trusted.answer) == (
        status,
        proxied,
        trusted,
    )
    assert advice in finding.advice
    assert bool(finding.advice) is bool(advice)
    for cell in (finding.proxied, finding.trusted):
        assert bool(cell.why) is (cell.answer is not Answer.YES)


@pytest.mark.parametrize(
    ("sandboxed", "captured"),
    [
        (result(1), YES),
        (
            result(1, Seen(reached=True), "x509"),
            Cell(Answer.NO, "it arrives, and refuses the certificate"),
        ),
        (
            result(1, Seen(reached=True)),
            Cell(Answer.NO, "it arrives; it ended with 1 before it asked"),
        ),
        (result(None, Seen()), Cell(Answer.NO, "it did not end within 15 s and came nowhere")),
    ],
)
def test_captured_is_who_arrives_without_a_word_of_a_proxy(
    sandboxed: ProbeResult, captured: Cell
) -> None:
    """And whose request is read there."""
    assert found(result(), sandboxed).captured == captured


@pytest.mark.parametrize(
    ("said", "clock", "answer"),
    [
        ("playhead-clock 1700000003", PRINTED, "yes"),
        ("playhead-clock 1700003603", PRINTED, "no"),
        ("playhead-clock 1600000000", PRINTED, "unknown"),
        ("nothing", PRINTED, "unknown"),
        ("22:13:25.1234 * Connected", (r"(?m)^(\d\d:\d\d:\d\d)\.\d", "%H %M %S"), "yes"),
        ("23:13:25.1234 * Connected", (r"(?m)^(\d\d:\d\d:\d\d)\.\d", "%H %M %S"), "no"),
        ("2023-11-14 22:13:25 URL", (r"(\d{4}-\S+ \S+)", "%Y %m %d %H %M %S"), "yes"),
        ("playhead-clock 1700000003", None, "unknown"),
    ],
)
def test_clock_is_virtual_where_the_time_of_the_tape_is_told(
    said: str, clock: tuple[str, str] | None, answer: str
) -> None:
    """Never by what kind of program it is."""
    cell = found(result(), result(output=said), replace(PROBE, clock=clock)).clock
    assert cell.answer == answer
    assert bool(cell.why) is (answer != "yes")


def test_what_a_preload_mends_is_told_where_it_was_tried() -> None:
    """Beside what is to be done without one."""
    past = result(0, DIRECT)
    assert diagnose(PROBE, past, result(), CLOCKS).preloaded.answer is Answer.UNKNOWN
    mended = diagnose(PROBE, past, result(), CLOCKS, again=result())
    assert (mended.status, mended.preloaded) == (Status.BYPASSED, YES)
    assert mended.advice.startswith("go through With --determinism")
    assert diagnose(PROBE, past, result(), CLOCKS, again=past).preloaded.answer is Answer.NO


@pytest.mark.parametrize(
    ("status", "preloaded", "code"),
    [
        (Status.OK, "unknown", 0),
        (Status.BYPASSED, "no", 0),
        (Status.ABSENT, "unknown", 0),
        (Status.UNTRUSTED, "yes", 0),
        (Status.UNTRUSTED, "no", 1),
        (Status.FAILED, "unknown", 1),
    ],
)
def test_who_reaches_us_and_cannot_use_us_is_a_failure(
    status: Status,
    preloaded: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unless a preload mends it; who goes past proxies by its nature is a finding only."""

    async def examined_before(*_: object, **__: object) -> list[Finding]:
        return [Finding("a client", status, YES, YES, YES, YES, Cell(Answer(preloaded)))]

    monkeypatch.setattr(doctor_run, "examine", examined_before)
    assert doctor_run.run_doctor(as_json=True) == code
    assert json.loads(capsys.readouterr().out)[0]["status"] == status


def test_who_goes_past_is_told_of_capture_where_it_was_seen_to_help() -> None:
    """The sandbox takes it to the proxy; nothing is promised that was not tried."""
    seen = diagnose(PROBE, result(0, DIRECT), result(), CLOCKS)
    assert seen.advice == "go through record --capture takes it to the proxy as it is."
    assert diagnose(PROBE, result(0, DIRECT), result(1, Seen()), CLOCKS).advice == "go through"


def test_what_there_was_no_time_for_is_no_finding() -> None:
    """It is listed as not tried, and is no failure; a sandbox that came too late is unknown."""
    cut = ProbeResult(Outcome(None, "", out_of_time=True), Seen())
    assert diagnose(PROBE, cut, cut, CLOCKS).status is Status.UNTRIED
    finding = diagnose(PROBE, result(), cut, CLOCKS)
    assert (finding.status, finding.captured.answer) == (Status.OK, Answer.UNKNOWN)
    assert "--all" in finding.captured.why
    text = render([diagnose(PROBE, cut, cut, CLOCKS)])
    assert text == "not tried, which `playhead doctor --all` does: a client"


def test_time_that_is_none_is_not_taken_for_one() -> None:
    """Some number with the look of it."""
    assert find_time("99:99:99.1", r"(\d\d:\d\d:\d\d)", "%H %M %S") is None


def test_client_that_fails_by_design_is_judged_by_what_was_seen() -> None:
    """git finds no repository, which is not the question."""
    assert found(result(128), probe=replace(PROBE, any_exit=True)).status is Status.OK


def test_absent_client_is_no_failure() -> None:
    """It is listed, so that nobody wonders whether it was tried; so is a name with nothing behind it."""
    assert diagnose(PROBE, None, None, CLOCKS).status is Status.ABSENT
    shim = result(127, Seen(), "pyenv: client: command not found")
    finding = diagnose(PROBE, shim, shim, CLOCKS)
    assert (finding.status, finding.detail) == (Status.ABSENT, "pyenv: client: command not found")
    late = ProbeResult(Outcome(None, "", out_of_time=True), Seen())
    assert diagnose(PROBE, shim, late, CLOCKS).status is Status.ABSENT


def test_clock_that_no_preload_reaches_is_told_with_the_reason() -> None:
    """Most runtimes need a compiler for it, once."""
    clocks = replace(CLOCKS, no_library="there is no C compiler here")
    cell = diagnose(PROBE, result(), result(output="playhead-clock 1700003600"), clocks).clock
    assert cell.answer is Answer.NO
    assert cell.why.endswith("(none for C programs: there is no C compiler here)")


def test_without_a_sandbox_nothing_is_said_of_it() -> None:
    """The reason is, and the clock was seen all the same."""
    sandboxed = result(output="playhead-clock 1700000000")
    finding = diagnose(PROBE, result(), sandboxed, CLOCKS, no_sandbox="user namespaces are off")
    assert finding.captured == Cell(Answer.UNKNOWN, "user namespaces are off")
    assert finding.clock == YES


def test_what_a_client_says_is_cut_and_made_safe() -> None:
    """Terminal sequences come from outside; the telling line stands before frames and versions."""
    output = "Picked up JAVA_TOOL_OPTIONS: -Dx\n\x1b[31mboom " + "x" * 999 + "\n    at f (a.js:1)\n"
    detail = found(result(1, Seen(), output)).detail
    assert detail.startswith("?[31mboom x")
    assert len(detail) == 200


def test_findings_are_written_for_people_and_programs() -> None:
    """A table, advice below it, each reason once; the same in JSON."""
    past = Cell(Answer.NO, "it went past")
    findings = [
        Finding("curl", Status.OK, YES, YES, YES, past, YES),
        Finding("node", Status.BYPASSED, past, YES, YES, YES, past, "do this", "said that"),
        Finding("wget", Status.OK, YES, YES, YES, past, YES),
        Finding("go", Status.ABSENT, *(Cell(Answer.UNKNOWN),) * 5),
    ]
    assert render(findings) == (
        "      proxied   trusted   captured  clock\n"
        "curl  yes       yes       yes       no\n"
        "node  no        yes       yes       yes\n"
        "wget  yes       yes       yes       no\n"
        "\n"
        "node: bypassed\n"
        "  do this\n"
        "  said that\n"
        "\n"
        "proxied no: it went past (node)\n"
        "clock no: it went past (curl, wget)\n"
        "not installed: go"
    )
    row = json.loads(render_json(findings))[1]
    assert row["proxied"] == {"answer": "no", "why": "it went past"}
    assert (row["client"], row["status"], row["advice"]) == ("node", "bypassed", "do this")
    assert render([]) == ""


def test_every_probe_asks_for_its_own_address() -> None:
    """In the command, its variables or the file that it runs; and what is not on PATH is not installed."""
    made = probes("https://near:{}".format, "https://far:{}".format, path="/nowhere")
    assert len({probe.url for probe in made}) == len({probe.name for probe in made}) == len(made)
    for number, probe in enumerate(made):
        texts = " ".join((*probe.command, *probe.files.values(), *probe.variables.values()))
        assert f"near:{number}" in texts or f"far:{number}" in texts
        assert not any(f"{{{name}}}" in texts for name in ("url", "plain", "place"))
    assert {probe.name for probe in made if probe.installed} >= {"python urllib", "aiohttp"}
    assert not any(probe.installed for probe in made if probe.name in ("curl", "git", "java"))


# ---- real clients ------------------------------------------------------------------------------------

REAL = ("curl", "wget", "git", "python urllib", "python http.client", "perl LWP", "node fetch")


def examined(folder: Path, *names: str) -> dict[str, Finding]:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        findings = runner.run(doctor_run.examine(folder, time.time_ns() / 1e9, names))
    return {finding.client: finding for finding in findings}


DISTRUSTFUL = """
import ssl, urllib.request as u
try:
    u.urlopen({url}, context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
except OSError:
    raise SystemExit(1)
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Finding]]:
    mine = table._python("distrustful", DISTRUSTFUL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_CLIENTS", (*table._CLIENTS, mine))
        yield examined(tmp_path_factory.mktemp("doctor"), "distrustful", *REAL)


@pytest.mark.parametrize("name", ["curl", "wget", "git", "python urllib", "perl LWP"])
def test_client_that_follows_its_variables_is_well(real: dict[str, Finding], name: str) -> None:
    """Its request is read, outside and in the sandbox."""
    need({"perl LWP": "perl with LWP"}.get(name, name.removesuffix(" urllib")))
    finding = real[name]
    assert (finding.status, finding.proxied, finding.trusted) == (Status.OK, YES, YES)
    assert finding.captured == YES


def test_client_that_goes_past_the_proxy_is_told_so(real: dict[str, Finding]) -> None:
    """It reaches the origin itself, with our certificate, and in the sandbox the proxy."""
    finding = real["python http.client"]
    assert finding.status is Status.BYPASSED
    assert finding.preloaded == YES
    assert "With --determinism" in finding.advice
    assert finding.proxied == Cell(Answer.NO, "it went to the origin itself")
    assert finding.trusted == finding.captured == YES


def test_client_that_refuses_the_certificate_is_told_so(real: dict[str, Finding]) -> None:
    """It has no roots, and says nothing of it: the proxy sees how it breaks off."""
    finding = real["distrustful"]
    assert (finding.status, finding.proxied) == (Status.UNTRUSTED, YES)
    assert finding.trusted == Cell(Answer.NO, "it refuses the certificate")
    assert finding.captured == Cell(Answer.NO, "it arrives, and refuses the certificate")
    assert finding.preloaded.answer is Answer.NO


def test_clock_of_an_interpreter_with_a_preload_is_that_of_the_tape(
    real: dict[str, Finding],
) -> None:
    """It is an hour behind; that of others is what they tell."""
    assert real["python urllib"].clock == YES
    if has("node"):
        assert real["node fetch"].clock == YES
        assert real["node fetch"].captured == YES


@pytest.mark.parametrize("step", ["open", "start"])
def test_machine_without_a_sandbox_is_examined_all_the_same(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but one column, wherever the making of it fails."""

    async def refuse(_: object) -> None:
        raise EngineError("user namespaces are refused here")

    monkeypatch.setattr(Sandbox, step, refuse)
    finding = examined(tmp_path, "python urllib")["python urllib"]
    assert (finding.status, finding.clock) == (Status.OK, YES)
    assert finding.captured == Cell(Answer.UNKNOWN, "user namespaces are refused here")
