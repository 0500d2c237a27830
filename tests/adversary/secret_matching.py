"""Every case of secrets_matching.yaml: recorded through a real proxy, replayed with other values, and what its receipt says, as JSON.

`python -m playhead.tests.adversary.secret_matching [-k WORD]` runs on a machine of its own; WORD is in the ids of the cases.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import RunId
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.certificates import make_certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import running_engine
from playhead.timeline import Receipt, build
from playhead.timeline.formats.tape_file import export_tape, import_tape

from .place import enter_with_hosts, in_memory
from .receipt_requests import Asked, hosts_of
from .receipt_servers import Servers, Stage
from .receipt_sides import Case, Side
from .receipts import Theatre
from .secret_recipes import expand, hostile, read
from .secret_texts import change, wrapped

FOLDER = Path(__file__).parent
_KEY, _OTHER_KEY = b"a test's key", b"the key of another store"
_LIMIT = 1 << 26
_EVERY = 8
"""Every so many cases are tried each day."""
_VALUE = re.compile(r"\$\{([a-z]\w*)(?:\|([\w-]+))?\}")


def cases() -> list[dict[str, Any]]:
    """Read all cases."""
    found: list[dict[str, Any]] = read("matching")["cases"]
    return found


def tried(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the cases that are tried today."""
    return every if FULL else every[::_EVERY]


def _written(case: Mapping[str, Any]) -> Case:
    """Put the values into a case; give it as one of receipts_*.yaml."""
    values = dict(expand(case)[0].values) if case["values"] else {}
    if "hostile" in case:
        text = next(one for one in read("hostile")["cases"] if one["id"] == case["hostile"])
        values["hostile"] = hostile(text, size=100_000).decode("latin-1")

    def put(match: re.Match[str]) -> str:
        value, how = values[match[1]], match[2]
        match how:
            case None:
                return value
            case "basic" | "basic-other":
                user = "bob" if how == "basic" else "eve"
                return base64.b64encode(f"{user}:{value}".encode()).decode()
            case "change":
                return change(value)
            case "placeholder":
                return Redactor(_KEY).stands_for(value.encode()).decode()
            case _:
                return wrapped(value, [how])

    def walk(found: Any) -> Any:
        if isinstance(found, str):
            return _VALUE.sub(put, found)
        if isinstance(found, Mapping):
            return {key: walk(one) for key, one in found.items()}
        return [walk(one) for one in found] if isinstance(found, list) else found

    sides: dict[str, Any] = {
        key: [_posted(walk(one), case.get("kind", "http")) for one in case[key]]
        for key in ("recorded", "present")
    }
    kind = case.get("kind", "http")
    if kind == "grpc":
        sides = {key: one[0] for key, one in sides.items()}
    return {
        "name": case["id"],
        "kind": kind,
        "requests": {},
        "both": walk(case.get("both", {})),
        "config": case.get("config", {}),
        **sides,
    }


def _posted(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"to": "POST /v1/a", **request} if kind == "http" else request


# ---- what an earlier answer gave ---------------------------------------------------------------------


def _given(answers: Mapping[int, Any], match: re.Match[str]) -> str:
    """Give what a client takes from an earlier answer, and computes."""
    number, name, how = int(match[1]), match[2], match[3]
    got = answers.get(number)
    if got is None:  # its request failed, which the judge sees
        return "nothing"
    body = bytes(got.body)
    if name.startswith("set-cookie."):
        said = next(value for field, value in got.headers if field.lower() == "set-cookie")
        value = str(said).split(";")[0].partition("=")[2]
    elif body.lstrip().startswith(b"<"):
        found = re.search(rf'name="{name}" value="([^"]*)"', body.decode())
        value = found[1] if found else "nothing"
    else:
        value = str(json.loads(body)[name])
    match how:
        case "sha256":
            return hashlib.sha256(value.encode()).hexdigest()
        case "length":
            return str(len(value))
        case "claims":
            part = value.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
            return ",".join(f"{key}={claims[key]}" for key in ("exp", "iat", "iss"))
        case _:
            return value


class _Side(Side):
    """A side whose requests take from earlier answers, in whatever place."""

    async def _begin(self, lane: str, asked: Asked) -> Any:
        got = {number: one for number, (_, one) in enumerate(self.answers, 1)}

        def put(match: re.Match[str]) -> str:
            return _given(got, match)

        told = re.compile(r"\$\{(\d+)\.([\w.-]+)(?:\|(\w+))?\}")
        fields = tuple((name, told.sub(put, value)) for name, value in asked.headers)
        body = asked.body
        if body is not None:
            plain = body.decode("latin-1").replace("%24%7B", "${").replace("%7D", "}")
            if told.search(plain):
                body = told.sub(put, plain.replace("%7C", "|")).encode("latin-1")
        new = replace(asked, headers=fields, body=body)
        return await super()._begin(lane, new)


# ---- the play ----------------------------------------------------------------------------------------


class _Theatre(Theatre):
    side = _Side

    def redact(self, case: Case) -> None:
        """Have a case recorded by its own rules for secrets."""
        config, _ = self._config(case)
        self._base = replace(self._base, redact=config.redact, redact_off=config.redact_off)


def _judge(case: Mapping[str, Any], receipt: Receipt, present: Side) -> str:
    """Say what is wrong with a receipt; empty where nothing is."""
    told = receipt.to_json()
    count = len(case["present"])
    expected = case["expected"] if isinstance(case["expected"], list) else [case["expected"]]
    expected = expected * (count if len(expected) == 1 else 1)
    rows = {row["seq"]: row for row in told["divergences"] if row["kind"] != "unused"}
    found = ["divergence" if seq in rows else "served" for seq in range(1, count + 1)]
    shown = [
        (seq, row["kind"], [one["place"] for one in row["differences"]], row["text"][:120])
        for seq, row in rows.items()
    ]
    if found != expected:
        return f"{found}, not {expected}: {shown} {present.problems}"
    place = case.get("place")
    places = [one["place"] for row in rows.values() for one in row["differences"]]
    if place and not any(_is_in(one, place) for one in places):
        return f"no difference at {place}: {shown}"
    matched = case.get("matched")
    if matched and set(told["matched"]) - {matched}:
        return f"matched {told['matched']}, not {matched}"
    for said in case.get("reports", ()):
        if not _reports(said, told, rows):
            return f"{said} is not reported: {shown}"
    return ""


def _is_in(found: str, place: str) -> bool:
    return found == place or found.startswith(tuple(place + sign for sign in ".[ "))


def _reports(said: str, told: Mapping[str, Any], rows: Mapping[int, Any]) -> bool:
    name, _, count = said.partition(": ")
    match name:
        case "credentials merged":
            return bool(told["credentials_merged"])
        case "kind alone":
            return bool(told["kind_alone"] == int(count))
        case "redaction":
            return any("redact" in row["text"] or "secret" in row["text"] for row in rows.values())
        case _:
            return bool(told["exit_code"] == 125)


async def _play(every: list[dict[str, Any]], folder: Path, names: list[str]) -> list[Any]:
    trust = make_certificates(folder / "certificates", tuple(names))
    stage = Stage()
    here, there = (
        Config(mode=Mode.RECORD, store=folder / name, upstream_ca=trust.root)
        for name in ("store", "other")
    )
    rows: dict[str, dict[str, str]] = {}
    tapes: dict[str, list[bytes]] = {}
    async with Servers(trust.chain, stage):
        async with running_engine(here, _KEY) as one:
            theatre = _Theatre(one, stage, folder)
            for given in every:
                case = _written(given)
                theatre.redact(case)
                problem = await _record(theatre, case)
                if not problem and given["store"] == "other":
                    pieces = tapes[given["id"]] = []
                    info = one.store.runs.get(RunId(given["id"]))
                    await asyncio.to_thread(
                        export_tape, one.store, info, pieces.append, lambda *_: None
                    )
                elif not problem:
                    problem = await _replay(theatre, given, case, one.store)
                rows[given["id"]] = {"name": given["id"], "problem": problem}
        # One process has one CA.
        there.store.mkdir()
        shutil.copytree(here.store / "private", there.store / "private")
        async with running_engine(there, _OTHER_KEY) as other:
            theatre = _Theatre(other, stage, folder)
            for given in every:
                if given["id"] in tapes:
                    data = partial(iter, tapes[given["id"]])
                    await asyncio.to_thread(import_tape, other.store, data, _LIMIT, lambda *_: None)
                    problem = await _replay(theatre, given, _written(given), other.store)
                    rows[given["id"]]["problem"] = problem
    return list(rows.values())


async def _record(theatre: _Theatre, case: Case) -> str:
    recorded = await theatre._side(case, "recorded")
    if recorded is None or recorded.problems:
        return f"broken: {recorded.problems if recorded else 'no run'}"
    return ""


async def _replay(theatre: _Theatre, given: Mapping[str, Any], case: Case, store: Store) -> str:
    config, problem = theatre._config(case)
    if problem:
        return problem
    present = await theatre._side(case, "present", config)
    if present is None:
        return "the replay made no run"
    return _judge(given, build(store, store.runs.get(RunId(f"{given['id']}@1"))), present)


def _main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("-k", default="")
    words.add_argument("--text", action="store_true")
    given = words.parse_args()
    chosen = [case for case in (cases() if given.k else tried(cases())) if given.k in case["id"]]
    names = sorted({name for case in chosen for name in hosts_of(case)} | {"api.example.test"})
    enter_with_hosts(names)
    with in_memory() as folder, contextlib.redirect_stdout(sys.stderr):
        rows = asyncio.run(_play(chosen, folder, names))
    if not given.text:
        json.dump(rows, sys.stdout)
        return
    for row in rows:
        if row["problem"]:
            print(f"{row['name']}\n    {row['problem']}")
    print(Counter(bool(row["problem"]) for row in rows))


if __name__ == "__main__":
    _main()
