"""Every case of gates.yaml against a real proxy that records, on a machine of its own; prints what came of each as JSON.

`python -m playhead.tests.adversary.gates`
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playhead.tests.support import machine, prepared
from playhead.tests.support.certificates import make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.process import Serve

from .arrivals import Upstreams
from .place import RESOLVER, configured, in_memory, read_cases
from .spelled import NotSpoken, Spelled, send, ways

CASES: dict[str, Any] = read_cases(Path(__file__))
_NAMES = (
    *("*.example.test", "other.test", "*.api.example.test", "localhost"),
    *("xn--bcher-kva.example.test", "XN--BCHER-KVA.example.test"),
)
_DEADLINE = "100ms"
_AT_ONCE = 8
_REQUESTS = ("h1", "h2", "absolute", "absolute-tls", "plain")

Asked = tuple[dict[str, Any], str]


def _chosen(cases: list[dict[str, Any]]) -> list[Asked]:
    """Give each case with the ways that are tried today: all of them, or one."""
    asked = []
    for number, case in enumerate(cases):
        over = tuple(way for way in ways(case) if way in _REQUESTS)
        if not FULL:
            over = (over[number % len(over)],)
        asked += [(case, way) for way in over]
    return asked


class Machine:
    """What the cases need: a folder with a store, and upstreams that note what comes."""

    def __init__(self, folder: Path, trust: Path, upstreams: Upstreams) -> None:
        self._folder, self._trust, self._upstreams = folder, trust, upstreams

    def ask(
        self, name: str, config: dict[str, Any], asked: list[Asked], at_once: int = _AT_ONCE
    ) -> list[dict[str, Any]]:
        """Send cases to a proxy with these rules; give a row for each."""
        path = configured(self._folder / f"{name}.yaml", {"mode": "record", **config})
        store = self._folder / name
        flags = ("-c", path, "--store", store, "--upstream-ca", self._trust)
        with Serve(*flags, "--listen", "127.0.0.1:0") as serve:
            host, _, port = serve.address.rpartition(":")

            def one(case: dict[str, Any], over: str) -> dict[str, Any]:
                row = {"case": case["id"], "over": over}
                spelled = Spelled(case, over, CASES["words"], f"{case['id']}/{over}")
                try:
                    return row | send(spelled, (host, int(port)), "gated:x", patience_s=10)
                except NotSpoken as error:
                    return row | {"skipped": str(error)}

            with ThreadPoolExecutor(at_once) as threads:
                rows = list(threads.map(lambda pair: one(*pair), asked))
        seen = self._upstreams.seen.take()
        marks = [",".join(arrival.values("x-case")) for arrival in seen.arrivals]
        for row in rows:
            row["arrived"] = marks.count(f"{row['case']}/{row['over']}")
        known = {f"{row['case']}/{row['over']}" for row in rows} | {"first"}
        strange = [
            arrival.to_json()
            for arrival, mark in zip(seen.arrivals, marks, strict=True)
            if mark not in known
        ]
        return [*rows, {"case": "", "over": "", "strange": strange}]


def _repeated() -> list[Asked]:
    paths = CASES["repeated"]["paths"]
    return [({"id": f"repeat-{number}", "path": path}, "plain") for number, path in enumerate(paths)]  # fmt: skip


def _doubled() -> list[Asked]:
    """Give the first effect, then each pair's second and others; bodies keep them apart from other pairs."""
    doubled = CASES["doubled"]
    asked: list[Asked] = []
    for case in [*doubled["pairs"], *doubled["apart"]]:
        body = case["id"]
        first = {"id": f"{body}-first", "path": "/v1/pay", "body": body}
        asked += [(first, "plain"), ({"path": "/v1/pay", "body": body, **case}, "plain")]
    return asked


def _main() -> None:
    machine.enter_or_exit(0, RESOLVER)
    prepared.stay_ready()
    with in_memory() as folder:
        trust = make_certificates(folder / "certificates", _NAMES)
        with Upstreams(trust.chain, CASES["addresses"]) as upstreams:
            here = Machine(folder, trust.root, upstreams)
            gate = {"when": "always", "deadline": _DEADLINE}
            rules = [{"match": match, "gate": gate} for match in CASES["gated"]]
            cases, controls = _chosen(CASES["cases"]), _chosen(CASES["controls"])
            stopped = CASES["stopped"]
            fault = {"match": stopped["fault"], "inject": "status", "status": 503}
            told = {
                "gated": here.ask("gated", {"effects": rules}, cases + controls),
                "open": here.ask("open", {}, cases if FULL else cases[:10]),
                "stopped": here.ask("stopped", {"faults": [fault]}, _chosen(stopped["paths"])),
                "doubled": here.ask(
                    "doubled",
                    {
                        "effects": [
                            {
                                "match": CASES["doubled"]["gated"],
                                "gate": {"when": "duplicates", "deadline": _DEADLINE},
                            }
                        ]
                    },
                    _doubled(),
                    at_once=1,
                ),
                "repeated": here.ask(
                    "repeated",
                    {"limits": {"repeats": CASES["repeated"]["limit"]}},
                    _repeated(),
                    at_once=1,
                ),
            }
        json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
