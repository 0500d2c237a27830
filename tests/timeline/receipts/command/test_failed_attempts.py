"""What receipts say of attempts that came to nothing, and of what a recording has missed."""

from typing import Any

import pytest

from playhead.tape.records.events import Event, EventKind
from playhead.tape.records.failed_attempt import GREETED, Attempt, AttemptKind
from playhead.timeline.receipts.command.bypass_remedies import (
    InUse,
    bypass_remedy,
    distrust_remedy,
)
from playhead.timeline.receipts.command.command_end import CommandEnd
from playhead.timeline.receipts.command.failed_attempts import (
    Findings,
    Side,
    find_attempts,
    find_bypassed,
    origin_of,
)
from playhead.timeline.receipts.command.proxy_bypass import PastProxy
from playhead.timeline.receipts.warnings_and_hints import Advice

HOST = "api.test"


def attempt(kind: AttemptKind = AttemptKind.EMPTY_TUNNEL, **more: Any) -> Event:
    """Give the event of an attempt."""
    told = Attempt(kind, HOST, 443, **more).to_event()
    return Event(EventKind.NOTED, 1, {"attempt": told})


def asked(seq: int = 1, kind: str = "read") -> Event:
    """Give the event of a request to the same host."""
    data = {"seq": seq, "url": f"https://{HOST}/a?b", "request_class": kind}
    return Event(EventKind.VERDICT, 1, data)


def cut(url: str = f"https://{HOST}/upload") -> Event:
    """Give the event of a request that its client cut."""
    return Event(EventKind.NOTED, 1, {"cut": ("POST", url)})


def find(own: list[Event], tape: list[Event] | None = None) -> Findings:
    """Find what becomes of a run, and of its tape."""
    sides = []
    for events in (own, tape or []):
        side = Side()
        for event in events:
            side.take(event)
        sides.append(side)
    return find_attempts(sides[0], None if tape is None else sides[1])


DISTRUST = attempt(
    AttemptKind.FAILED_HANDSHAKE, distrusted=True, process="node", detail="distrusts"
)
IN_TLS = attempt(detail="nothing was asked in its TLS", process="node")
SILENT = attempt(detail="nothing was said in it")


@pytest.mark.parametrize(
    ("events", "warned", "unrecorded"),
    [
        ([], 0, 0),
        ([DISTRUST], 1, 1),
        ([asked(), DISTRUST], 1, 1),
        ([IN_TLS], 1, 1),  # so does Node, which looks at the certificate once TLS is there
        ([asked(), IN_TLS], 1, 0),
        ([attempt(detail="nothing was asked in its TLS", process="chromium")], 1, 0),
        ([attempt(detail="nothing was asked in its TLS")], 1, 1),  # nobody knows who that was
        # Whoever pins a key looks once TLS is there, and gRPC leaves without a word.
        ([attempt(detail="nothing was asked in its TLS", process="python3.13")], 1, 1),
        ([attempt(AttemptKind.FAILED_HANDSHAKE, detail="left", process="python3.13")], 1, 1),
        ([asked(), attempt(detail="nothing was asked in its TLS", process="python3.13")], 1, 0),
        ([attempt(detail=GREETED, process="python3.13")], 1, 0),
        ([attempt(detail=GREETED, process="node")], 1, 1),
        ([attempt(AttemptKind.FAILED_HANDSHAKE, detail="left", process="firefox")], 1, 0),
        ([SILENT], 1, 0),
        ([asked(), attempt(beside=True)], 0, 0),
        ([attempt(AttemptKind.MALFORMED_REQUEST)], 1, 0),
        ([cut(), cut()], 1, 0),
    ],
)
def test_a_recording_says_what_it_may_have_missed(
    events: list[Event], warned: int, unrecorded: int
) -> None:
    """A client that may not trust the CA hides what it meant to ask; the rest is a warning, or a row alone."""
    found = find(events)
    assert (len(found.warnings), len(found.unrecorded)) == (warned, unrecorded)
    assert found.divergences == []


def test_a_warning_names_host_process_and_remedy() -> None:
    """In one sentence each."""
    (text,) = find([DISTRUST, DISTRUST]).warnings
    assert text.startswith("2 times failed handshake to api.test:443, by node: distrusts. ")
    assert "NODE_EXTRA_CA_CERTS" in text


def test_a_host_with_telemetry_alone_is_reported() -> None:
    """Telemetry is never a divergence, and neither is a connection for it that nothing came over."""
    for own, tape in (
        ([asked(kind="telemetry"), DISTRUST], []),
        ([], [asked(kind="telemetry"), DISTRUST]),
    ):
        found = find(own, tape)
        assert found.divergences == []
        assert [row["differs"] for row in found.rows] == [False]
    assert find([asked(), asked(kind="telemetry"), DISTRUST], []).divergences


def test_how_often_chromium_refuses_a_certificate_that_it_then_ignores_is_reported() -> None:
    """As many connections as it had made by then; in both runs, and where it asked on."""
    refused = attempt(AttemptKind.FAILED_HANDSHAKE, distrusted=True, process="chromium")
    one, two = [refused, asked()], [refused, refused, asked()]
    assert find(one, two).divergences == find(two, one).divergences == []
    assert [row["count"] for row in find(one, two).rows] == [1]
    assert find([asked()], one).divergences
    assert find([refused], [refused, refused]).divergences
    assert find([DISTRUST, asked()], [DISTRUST, DISTRUST, asked()]).divergences


def test_egress_is_what_the_tape_does_not_have() -> None:
    """And of what others do where something is asked, nothing."""
    noise = attempt(AttemptKind.MALFORMED_REQUEST, egress="no request of HTTP, but SSH")
    silent = attempt(egress="connected to", spared=True)
    assert [row["reason"] for row in find([noise], []).egress] == ["no request of HTTP, but SSH"]
    assert find([noise], [noise]).egress == []
    assert [row["count"] for row in find([silent, silent], []).egress] == [2]
    assert find([asked(), silent], []).egress == []


def test_a_cut_request_that_is_missing_is_named() -> None:
    """With its method and URL; a surplus one is a divergence when it comes."""
    (missing,) = find([cut()], [cut(), cut()]).divergences
    assert (missing["kind"], missing["method"]) == ("unused", "POST")
    assert missing["text"].startswith("cut request: on the tape, and not made again")
    assert find([cut()], [cut()]).divergences == []
    (row,) = find([cut()], [cut(), cut()]).rows
    assert (row["count"], row["recorded"], row["differs"]) == (1, 2, True)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://API.test/a?b", ("api.test", 443)),
        ("http://api.test", ("api.test", 80)),
        ("wss://api.test:8443/x", ("api.test", 8443)),
        ("https://[::1]/x", ("::1", 443)),
        ("https://api.test?x=/y", ("api.test", 443)),
        ("nothing", ("", 0)),
        ("https://[bad/x", ("", 0)),
    ],
)
def test_the_origin_of_a_url(url: str, origin: tuple[str, int]) -> None:
    """Host and port, also where the URL is none."""
    assert origin_of(url) == origin


def socket(port: int, process: str = "curl", address: str = "192.0.2.1") -> dict[str, Any]:
    """Give a socket past the proxy."""
    return {"protocol": "tcp", "address": address, "port": port, "process": process}


def test_what_went_past_is_named_by_its_process() -> None:
    """With the remedy; questions to DNS are none of it."""
    rows = [socket(443), socket(80), socket(443, "node", "2001:db8::1"), socket(53, "dig")]
    (curl, _), (node, remedy) = find_bypassed(rows)
    assert curl == "curl went past the proxy, to tcp 192.0.2.1:443, tcp 192.0.2.1:80"
    assert node == "node went past the proxy, to tcp [2001:db8::1]:443"
    assert "--capture" in remedy
    assert "--determinism seed" in remedy
    assert "NODE_EXTRA_CA_CERTS" in remedy


@pytest.mark.parametrize(
    ("process", "variable", "preload"),
    [
        ("node", "NODE_EXTRA_CA_CERTS", True),
        ("python3.13", "SSL_CERT_FILE", True),
        ("python3.13", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", True),
        ("curl", "CURL_CA_BUNDLE", False),
        ("java", "JAVA_TOOL_OPTIONS", False),
        ("strange", "NODE_EXTRA_CA_CERTS or SSL_CERT_FILE", False),
    ],
)
def test_a_remedy_suits_its_process(process: str, variable: str, preload: bool) -> None:
    """The variable that it reads, and the preload where there is one for it."""
    told = distrust_remedy([process])
    assert variable in told
    assert ("--determinism" in told) == preload == ("--determinism" in bypass_remedy([process]))
    assert "--capture" in told


def test_a_remedy_names_nothing_that_is_in_use() -> None:
    """Playhead sets the variables of a command that it starts; a preload and a sandbox are there once."""
    started = distrust_remedy(["python3.13"], InUse(is_launched=True))
    assert "`playhead env`" not in started
    assert "have it load the file that SSL_CERT_FILE names" in started
    assert "--determinism" in started
    assert "--capture" in started
    everything = InUse(is_launched=True, is_contained=True, has_preload=True)
    for remedy in (distrust_remedy, bypass_remedy):
        assert "--" not in remedy(["python3.13"], everything)


@pytest.mark.parametrize(
    ("in_use", "then"),
    [
        (InUse(), "and record with --sandbox notify (on Linux) or --capture"),
        (InUse(capture={"off": "EBUSY", "ports": [80, 443]}), "--capture"),
        (InUse(capture={"off": "", "ports": [80, 443]}), "and record in the same way"),
        (InUse(is_contained=True), "and record in the same way"),
    ],
)
def test_ports_that_were_seen_are_named_as_the_configuration_takes_them(
    in_use: InUse, then: str
) -> None:
    """Those that are led to the proxy anyway are not."""
    told = bypass_remedy(["python3"], in_use, [7850, 443, 7850])
    assert "add `sandbox: {ports: [7850]}` to the configuration" in told
    assert then in told
    ((_, remedy),) = find_bypassed([socket(7850)], in_use)
    assert "sandbox: {ports: [7850]}" in remedy


def test_a_replay_whose_client_distrusts_the_proxy_is_told_what_to_do() -> None:
    """Also where its tape has the same; not of a host that answered it."""
    (told,) = find([DISTRUST], [DISTRUST]).warnings
    assert "SSL_CERT_FILE" in told
    assert find([asked(), DISTRUST], [asked(), DISTRUST]).warnings == []
    assert find([], [DISTRUST]).warnings == []


def test_a_remedy_for_chromium_names_the_database_of_its_user() -> None:
    """It reads no variable, and not the system's roots: `--capture` would not help."""
    told = distrust_remedy(["chromium"])
    assert "sql:$HOME/.pki/nssdb" in told
    assert "--capture" not in told
    assert "--capture" in distrust_remedy(["chromium", "node"])


def test_who_goes_past_is_told_of_the_capture_without_a_sandbox_unless_it_was_on() -> None:
    """Where it was tried already, it has not helped."""
    assert "--sandbox notify" in bypass_remedy(["curl"])
    for off in ("EBUSY", ""):
        in_use = InUse(capture={"off": off})
        assert "--sandbox notify" not in bypass_remedy(["curl"], in_use)
        ((_, remedy),) = find_bypassed([socket(443)], in_use)
        assert "--sandbox notify" not in remedy


def test_a_capture_that_ended_too_early_has_missed_something() -> None:
    """Nobody knows what went past since: the recording is not taken for whole."""
    capture = {
        **{"no_new_privileges": False, "off": "", "blind": "", "unseen": {}, "rings": {}},
        "passed": (),
    }
    for lost in (False, True):
        found = PastProxy(capture={**capture, "lost": lost})
        advice = Advice()
        in_use = InUse(capture=found.capture)
        found.find_unrecorded(found.close(in_use, playing=False), 1, advice, in_use, CommandEnd(0))
        assert bool(found.unrecorded) is bool(advice.warnings) is lost
    assert "the capture ended before the command did" in found.unrecorded_lines()[0]


def test_a_replay_is_told_why_a_host_is_not_on_its_tape() -> None:
    """Its client passed untouched while it was recorded; a host that it does not come to is not named."""
    rows = [
        {"host": host, "port": 443, "process": "node", "count": 2, "why": why}
        for host, why in (
            ("api.test", "distrusts"),
            ("db.test", "no HTTP"),
            ("b.test", "distrusts"),
        )
    ]
    own, tape = Side(), Side()
    tape.take(Event(EventKind.NOTED, 1, {"capture": {"passed": rows}}))
    assert find_attempts(own, tape).warnings == []
    for host in ("api.test", "db.test"):
        asked = {"url": f"https://{host}/v1", "request_class": "read"}
        own.take(Event(EventKind.INTENT, 1, asked))
    (told,) = find_attempts(own, tape).warnings
    assert told.startswith("api.test:443 is not on the tape: node did not trust the proxy's CA")
    assert "NODE_EXTRA_CA_CERTS" in told
