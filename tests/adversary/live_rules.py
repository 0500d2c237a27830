"""Every case of live_rules.yaml against a real proxy in playback, on a machine of its own; prints a row for each as JSON.

`python -m playhead.tests.adversary.live_rules` has a network with loopback alone, so that names, DNS and the ports that
are everybody's are its own.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playhead.tests.support import machine, prepared
from playhead.tests.support.certificates import Certificates, make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.process import Serve, playhead

from .arrivals import Knocks, Seen, Upstreams
from .place import RESOLVER, configured, in_memory, read_cases
from .readings import objections
from .spelled import NotSpoken, Spelled, send, ways

CASES: dict[str, Any] = read_cases(Path(__file__))
_NAMES = (
    *("*.example.test", "example.test", "*.evil.test", "evil.test", "api.example.test.evil.test"),
    *("evilexample.test", "apixexample.test", "a.b.example.test", "rebind.test", "any.test"),
    *("xn--pi-6kc.example.test", "xn--bcher-kva.example.test", "localhost"),
)
_ADDRESSES = {
    **CASES["addresses"],
    **{"rebind.test": "127.0.0.1", "any.test": "0.0.0.0", "a.localhost": "127.0.0.1"},
}


class Machine:
    """What the cases need: a folder, upstreams that note what comes, and a tape."""

    def __init__(self, folder: Path, trust: Certificates, upstreams: Upstreams) -> None:
        self.folder, self.trust, self.upstreams = folder, trust, upstreams

    def flags(self, name: str, config: dict[str, Any]) -> tuple[str | Path, ...]:
        """Give the flags of `serve` with a configuration."""
        path = configured(self.folder / f"{name}.yaml", config)
        return ("-c", path, "--store", self.folder / "store", "--upstream-ca", self.trust.root)

    def record(self) -> None:
        """Record a little over HTTP/1.1 and HTTP/2, so that there is a tape to play and a protocol for each host."""
        flags = self.flags("record", {"mode": "record"})
        with Serve(*flags, "--listen", "127.0.0.1:0") as serve:
            for host in (
                "api.example.test",
                "b.example.test",
                "evil.test",
                "xn--bcher-kva.example.test",
            ):
                for over in ("h2", "h1", "plain"):
                    words = {"host": host, "base": "/recorded", "leaf": over}
                    case = {"method": "GET"}
                    told = send(Spelled(case, over, words, "record"), _at(serve), "tape:x")
                    assert told["reached"], (host, over, told)
        done = playhead("runs", "--store", self.folder / "store", "--json")
        assert json.loads(done.stdout), done.stderr

    def seen(self) -> Seen:
        """Take what was seen; what the proxy does once its client has its answer is waited for."""
        time.sleep(0.002)
        return self.upstreams.seen.take()


def _at(serve: Serve) -> tuple[str, int]:
    host, _, port = serve.address.rpartition(":")
    return host, int(port)


def _shape(here: Machine, name: str) -> Iterator[dict[str, Any]]:
    """Send every case to a proxy that has the rules of one shape."""
    shape = CASES["shapes"][name]
    words = {**CASES["words"], "base": shape["base"]}
    config = {"mode": "playback", "playback": {"run": "tape"}, "live": shape["live"]}
    with Serve(*here.flags(name, config), "--listen", "127.0.0.1:0") as serve:
        place = list(CASES["shapes"]).index(name)
        for number, (case, expected) in enumerate(_listed(name)):
            if not is_tried(case, name):
                continue
            for over in _chosen(ways(case), number + place):
                row = {"shape": name, "case": case["id"], "over": over, "expected": expected}
                here.seen()
                try:
                    row |= send(Spelled(case, over, words, case["id"]), _at(serve), "tape:x")
                except NotSpoken as error:
                    yield row | {"skipped": str(error)}
                    continue
                yield row | _verdict_of(here.seen(), shape["named"])


def _listed(shape: str) -> list[tuple[dict[str, Any], str]]:
    """Give the cases of a shape, each with what is expected."""
    listed = []
    for case in CASES["cases"]:
        given = case.get("expect", "refused")
        listed.append((case, given if isinstance(given, str) else given.get(shape, "refused")))
    controls = [*CASES["controls"], *CASES["controls_of"].get(shape, [])]
    return listed + [(case, "passes") for case in controls]


def is_tried(case: dict[str, Any], shape: str) -> bool:
    """Say whether a case is tried with a shape today: always, or with one of the three, and those it says something of."""
    expected = case.get("expect", "")
    named = not isinstance(expected, str) and shape in expected
    if FULL or named or (case["id"].startswith("path-") and shape == "path"):
        return True
    place = CASES["cases"].index(case) if case in CASES["cases"] else len(case["id"])
    return place % 3 == list(CASES["shapes"]).index(shape)


def _chosen(ways: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Give the ways that are tried today: all of them, or one, another for each shape."""
    return ways if FULL else (ways[number % len(ways)],)


def _verdict_of(seen: Seen, named: dict[str, Any]) -> dict[str, Any]:
    """Say what reached an upstream, and what of it no rule names."""
    found = [arrival for arrival in seen.arrivals if arrival.values("x-case") != ["first"]]
    wrong = [problem for arrival in seen.arrivals for problem in objections(arrival, named)]
    for address, port in seen.connections:
        if address not in named["addresses"] or port not in (80, 443):
            wrong.append(f"a connection was made to {address}:{port}")
    return {"arrivals": [arrival.to_json() for arrival in found], "objections": wrong}


def _written(here: Machine) -> Iterator[dict[str, Any]]:
    """Send requests to rules that are written in an unusual way."""
    rules = [{"match": case["match"], "reason": case["id"]} for case in CASES["written"]]
    config = {"mode": "playback", "playback": {"run": "tape"}, "live_max": 100, "live": rules}
    words = {**CASES["words"], "base": "/v1"}
    with Serve(*here.flags("written", config), "--listen", "127.0.0.1:0") as serve:
        for number, case in enumerate(CASES["written"]):
            scheme = _OF_SCHEME[case["match"].rpartition("://")[0].split(" ")[-1]]
            over_all = tuple(case.get("over", scheme))
            for over in _chosen(tuple(way for way in over_all if way in ways(case)), number):
                here.seen()
                told = send(Spelled(case, over, words, case["id"]), _at(serve), "tape:x")
                arrived = len(here.seen().arrivals)
                yield {"case": case["id"], "over": over, "arrived": arrived, **told}


_OF_SCHEME = {
    "https": ("h1", "h2", "absolute-tls"),
    "http": ("absolute", "plain"),
    "wss": ("ws",),
    "ws": ("ws-plain",),
    "*": (),
}
"""Ways over which a rule with a scheme lets something out."""


def _tenants(here: Machine) -> Iterator[dict[str, Any]]:
    """Record every case of tenants, then play it; say with which status it was answered."""
    asked = []
    for number, case in enumerate(CASES["tenants"]):
        over_all = tuple(way for way in ways(case) if way in _REQUESTS)
        for over in _chosen(over_all, number):
            words = {**CASES["words"], "base": f"/{case['id']}", "leaf": over}
            plain = {"method": "GET", **case.get("recorded", {})}
            asked.append((case, over, plain, words))
    with Serve(*here.flags("tenants", {"mode": "record"}), "--listen", "127.0.0.1:0") as serve:
        for case, over, plain, words in asked:
            told = send(Spelled(plain, over, words, case["id"]), _at(serve), "tenants:x")
            assert told["reached"], (case["id"], over, told)
    config = {"mode": "playback", "playback": {"run": "tenants"}}
    with Serve(*here.flags("tenants", config), "--listen", "127.0.0.1:0") as serve:
        for case, over, _, words in asked:
            spelled = Spelled({"method": "GET", **case}, over, words, case["id"])
            yield {"case": case["id"], "over": over, **send(spelled, _at(serve), "tenants:x")}


_REQUESTS = ("h1", "h2", "absolute", "absolute-tls", "plain")


def _own(here: Machine) -> Iterator[dict[str, Any]]:
    """Ask the proxy for its own ports, by every name of loopback; and for another service of the machine."""
    own = CASES["own"]
    ports = own["ports"]
    for number, (mode, reach) in enumerate(_PLACES):
        config = {
            **{"mode": mode, "live": own["live"], "listen": f"127.0.0.1:{ports['proxy']}"},
            "control": {"listen": f"{reach}:{ports['control']}", "public": True},
            **({"playback": {"run": "tape"}} if mode == "playback" else {}),
        }
        with (
            Serve(*here.flags(f"own-{number}", config)) as serve,
            Knocks(*ports.values()) as knocks,
        ):
            asked = [(one, port) for one in own["spellings"] for port in ports.values()]
            asked += [(one, 8080) for one in own["controls"]]
            for place, (spelling, port) in enumerate(asked):
                if not FULL and port != 8080 and (place // 2 + number) % 2:
                    continue
                for over in _chosen(("absolute", "plain"), place + number):
                    authority = f"{spelling['name']}:{port}"
                    case = {"method": "GET", "tunnel": authority, "url": authority}
                    case |= {"host": authority, "path": "/healthz"}
                    knocks.take()
                    spelled = Spelled(case, over, CASES["words"], spelling["id"])
                    run = "tape:x" if mode == "playback" else "own:x"
                    told = send(spelled, _at(serve), run, patience_s=2)
                    came = knocks.take() - {(ports["proxy"], told.get("source"))}
                    yield {
                        **{"case": spelling["id"], "over": over, "port": port, "mode": mode},
                        **{"reach": reach, "knocks": len(came), **told},
                    }


_PLACES = [(mode, reach) for mode in ("playback", "record") for reach in ("127.0.0.1", "0.0.0.0")]
"""Modes, and where the control API listens."""


def _main() -> None:
    machine.enter_or_exit(0, RESOLVER)
    prepared.stay_ready()
    with in_memory() as folder:
        trust = make_certificates(folder / "certificates", _NAMES)
        with Upstreams(trust.chain, _ADDRESSES) as upstreams:
            here = Machine(folder, trust, upstreams)
            here.record()
            rows = [row for name in CASES["shapes"] for row in _shape(here, name)]
            told = {"shapes": rows, "own": list(_own(here))}
            told |= {"written": list(_written(here)), "tenants": list(_tenants(here))}
        json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
