"""Planted histories: one resource that several runs read and write, among others that look like it.

`history(count, seed)` gives cases `{"id", "kind", "url", "runs": [run, ...], "truth"}`. Runs are in the order of time and
named by their index. Some overlap. The truth, for `url`:

    "changes"      in the order of time:
        "run", "seq", "method"   who wrote it; None, None, None where no recorded request did: somebody else wrote it,
                                 and `seen` says where the new value was read first.
        "seen"                   {"run", "seq"} of the first answer that has the new value; the writer's own, often.
        "fields"                 list of {"path", "old", "new"}; a value that is not there is {"missing": true}, any other
                                 {"value": ...}. Creation and deletion are one field, "$".
    "old_reads"    {"run", "seq", "path", "value"}: answers to reads that still had the old value after a write had been
                   answered: a cache, or a replica that is late.
    "stale"        writes made on a stale read: {"run", "seq", "read": {"run", "seq"}, "changed": {"run", "seq", "seen"}}: what
                   the writer had read last was changed by somebody else before it wrote. `lost` lists the paths that it
                   set back to the old value. A write without a read before it is not one.

Writes that were refused (409, 412, 500) change nothing. The body of a GET is the truth; where a write's answer has no
body, what was sent is. `updated_at` and `version` change with each write; they are fields like any other.
"""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from .run import START_MS, Run
from .wire import Plain

_PLACES = ["Oslo", "Lima", "Cairo", "Quito", "Hanoi", "Accra", "Sofia", "Tunis", "Minsk", "Dakar"]


def difference(old: Any, new: Any, path: str = "$") -> list[Plain]:
    """Give the fields in which two values of a resource differ; lists as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            if key not in new:
                found.append(
                    {"path": f"{path}.{key}", "old": {"value": old[key]}, "new": {"missing": True}}
                )
            elif key not in old:
                found.append(
                    {"path": f"{path}.{key}", "old": {"missing": True}, "new": {"value": new[key]}}
                )
            else:
                found += difference(old[key], new[key], f"{path}.{key}")
        return found
    return [] if old == new else [{"path": path, "old": {"value": old}, "new": {"value": new}}]


class _World:
    """A server with one resource, and runs that use it; the truth is noted as it happens."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.number = rng.randrange(10, 99)
        self.url = f"https://shop.test/v1/orders/{self.number}"
        self.now_ms = START_MS
        self.runs: list[Run] = []
        self.value: Plain | None = None
        self.changes: list[Plain] = []
        self.old_reads: list[Plain] = []
        self.stale: list[Plain] = []
        self._read: dict[int, tuple[int, Plain]] = {}
        self._unseen = False

    def fresh(self) -> Plain:
        """Give a first value."""
        return {
            "id": self.number,
            "status": "open",
            "amount": self.rng.randrange(1_000, 9_000),
            "address": {
                "city": self.rng.choice(_PLACES),
                "zip": f"{self.rng.randrange(10_000, 99_999)}",
            },
            "tags": ["new"],
            "version": 1,
        }

    def run(self) -> int:
        """Begin a run; give its index."""
        self.now_ms += self.rng.randint(60_000, 4_000_000)
        self.runs.append(Run(self.rng, self.now_ms))
        return len(self.runs) - 1

    def _send(
        self, run: int, method: str, url: str, body: Any, answer: Any, status: int, **more: Any
    ) -> int:
        sender = self.runs[run]
        sender.now_ms = max(sender.now_ms, self.now_ms)
        seq = sender.add(method, url, body, answer, status, process=5000 + run, **more)
        self.now_ms = sender.now_ms
        return seq

    def read(self, run: int, answer: Plain | None = None) -> int:
        """Read it; `answer` is what a late replica says."""
        late, value = answer is not None, answer or self.value
        status, body = (200, value) if value is not None else (404, {"error": "not found"})
        seq = self._send(run, "GET", self.url, None, body, status)
        if late and self.value is not None:
            for field in difference(value, self.value):
                self.old_reads.append(
                    {"run": run, "seq": seq, "path": field["path"], "value": value_of(field["old"])}
                )
        elif self._unseen:
            self._unseen = False
            self.changes[-1]["seen"] = {"run": run, "seq": seq}
        if value is not None:
            self._read[run] = (seq, deepcopy(value))
        return seq

    def last_read(self, run: int) -> Plain:
        """Give what this run knows of it."""
        return deepcopy(self._read[run][1])

    def others(self, run: int) -> None:
        """Use resources that only look like it."""
        for url in (
            f"{self.url}0",
            self.url.replace("/v1/", "/v2/"),
            f"{self.url}/lines",
            "https://api.test/orders",
        ):
            if self.rng.random() < 0.5:
                status = self.rng.choice(("paid", "lost"))
                self._send(run, "GET", url, None, {"id": 1, "status": status, "amount": 5}, 200)

    def write(
        self, run: int, method: str, body: Plain | None, *, status: int = 200, silent: bool = False
    ) -> int:
        """Write it; `silent` answers have no body."""
        old, refused = self.value, status >= 400
        new = deepcopy(old)
        if not refused:
            if method == "DELETE":
                new = None
            elif method == "PATCH" and new is not None and body is not None:
                _merge(new, body)
            else:
                new = deepcopy(body)
            if new is not None and old is not None:
                new["version"] = old["version"] + 1
        answer = {"error": "refused"} if refused else None if silent or method == "DELETE" else new
        if silent and not refused and new is not None and old is not None and method != "DELETE":
            sent = deepcopy(body) or {}
            new["version"] = sent.get("version", old["version"])
        seq = self._send(run, method, self.url, body, answer, 204 if answer is None else status)
        if not refused:
            self._changed(run, seq, method, old, new, body or {})
        return seq

    def create(self, run: int) -> int:
        """Create it by a POST to its collection."""
        self.value = self.fresh()
        sent = {key: one for key, one in self.value.items() if key not in ("id", "version")}
        collection = self.url.rsplit("/", 1)[0]
        place = {"location": f"/v1/orders/{self.number}"}
        seq = self._send(run, "POST", collection, sent, self.value, 201, response_headers=place)
        fields = [{"path": "$", "old": {"missing": True}, "new": {"value": deepcopy(self.value)}}]
        self._note(run, seq, "POST", fields)
        self._read[run] = (seq, deepcopy(self.value))
        return seq

    def outside(self, **fields: Any) -> None:
        """Have somebody change it whom no run recorded."""
        assert self.value is not None
        new = self.value | fields | {"version": self.value["version"] + 1}
        self.changes.append(
            {
                "run": None,
                "seq": None,
                "method": None,
                "seen": None,
                "fields": difference(self.value, new),
            }
        )
        self.value, self._unseen = new, True

    def _note(self, run: int, seq: int, method: str, fields: list[Plain]) -> None:
        place = {"run": run, "seq": seq}
        self.changes.append(place | {"method": method, "seen": place, "fields": fields})

    def _changed(
        self, run: int, seq: int, method: str, old: Plain | None, new: Plain | None, body: Plain
    ) -> None:
        fields: list[Plain]
        if new is None:
            fields = [{"path": "$", "old": {"value": old}, "new": {"missing": True}}]
        else:
            fields = difference(old, new)
        assert not self._unseen, "what nobody read is no truth"
        seen = self._read.get(run)
        if seen and old is not None and seen[1] != old and self.changes:
            first = next(one for one in self.changes if _after(one, seen[1]["version"]))
            changed = {key: first[key] for key in ("run", "seq", "seen")}
            lost = [
                one["path"]
                for one in fields
                if new is not None
                and one["path"] != "$.version"
                and _at(new, one["path"]) == _at(seen[1], one["path"])
            ]
            place = {"run": run, "seq": seq, "read": {"run": run, "seq": seen[0]}}
            self.stale.append(place | {"changed": changed, "lost": lost})
        self.value = new
        self._note(run, seq, method, fields)
        if new is not None:
            self._read[run] = (seq, deepcopy(new))


def value_of(side: Plain) -> Any:
    """Give the value of one side of a field; None where it is missing."""
    return side.get("value")


def _at(body: Any, path: str) -> Any:
    for key in path.split(".")[1:]:
        body = body.get(key) if isinstance(body, dict) else None
    return body


def _after(change: Plain, version: int) -> bool:
    """Say whether a change came after the read of a version."""
    for one in change["fields"]:
        if one["path"] == "$.version":
            return bool(one["old"]["value"] >= version)
    return False


def _merge(value: Plain, patch: Plain) -> None:
    for key, one in patch.items():
        if one is None:
            value.pop(key, None)
        elif isinstance(one, dict) and isinstance(value.get(key), dict):
            _merge(value[key], one)
        else:
            value[key] = deepcopy(one)


def _put(world: _World, run: int, silent: bool = False, **fields: Any) -> int:
    """Write back what this run read last, with other fields."""
    return world.write(run, "PUT", world.last_read(run) | fields, silent=silent)


def _plain(world: _World) -> None:
    run = world.run()
    world.create(run)
    world.others(run)
    world.write(run, "PATCH", {"status": "paid"})
    other = world.run()
    world.read(other)
    _put(world, other, amount=world.rng.randrange(10, 900))
    world.read(world.run())


def _nested(world: _World) -> None:
    run = world.run()
    world.create(run)
    world.write(run, "PATCH", {"address": {"city": "Bergen"}, "note": "moved"})
    world.read(run)
    world.write(world.run(), "PATCH", {"note": None, "tags": ["new", "moved"]})


def _lost_update(world: _World) -> None:
    world.create(world.run())
    one, other = world.run(), world.run()
    world.read(one)
    world.read(other)
    _put(world, one, status="paid")
    world.others(other)
    _put(world, other, amount=1)
    world.read(one)


def _outside(world: _World) -> None:
    run = world.run()
    world.create(run)
    world.outside(status="blocked")
    world.others(run)
    world.read(run)
    later = world.run()
    world.outside(amount=7)
    world.read(later)
    world.write(later, "PATCH", {"status": "open"})


def _outside_stale(world: _World) -> None:
    run = world.run()
    world.create(run)
    world.read(run)
    world.outside(status="blocked")
    world.read(world.run())
    _put(world, run, amount=3)
    world.read(world.run())


def _replica(world: _World) -> None:
    run = world.run()
    world.create(run)
    before = deepcopy(world.value)
    world.write(run, "PATCH", {"status": "paid"})
    world.read(run, before)
    other = world.run()
    world.read(other, before)
    world.read(other)


def _refused(world: _World) -> None:
    run = world.run()
    world.create(run)
    other = world.run()
    world.read(other)
    world.write(run, "PATCH", {"status": "paid"})
    for status in world.rng.sample((409, 412, 500), 2):
        world.write(
            other, "PUT", {"id": world.number, "status": "lost", "version": 1}, status=status
        )
    world.read(other)
    world.write(other, "PATCH", {"status": "sent"})


def _deleted(world: _World) -> None:
    run = world.run()
    world.create(run)
    other = world.run()
    world.read(other)
    world.write(run, "DELETE", None)
    world.read(other)
    world.read(run)


def _silent(world: _World) -> None:
    run = world.run()
    world.create(run)
    _put(world, run, status="paid", silent=True)
    world.read(run)


def _unchanged(world: _World) -> None:
    run = world.run()
    world.create(run)
    for _ in range(3):
        world.read(run)
        world.others(run)
    world.read(world.run())


_KINDS: tuple[tuple[str, Callable[[_World], None]], ...] = (
    ("read and written by turns", _plain),
    ("nested fields", _nested),
    ("lost update", _lost_update),
    ("changed by somebody else", _outside),
    ("written over somebody else's change", _outside_stale),
    ("late replica", _replica),
    ("refused writes", _refused),
    ("deleted", _deleted),
    ("writes without a body in the answer", _silent),
    ("never changed", _unchanged),
)


def history(count: int = 60, seed: int = 22) -> list[Plain]:
    """Give histories of a resource."""
    cases = []
    for index in range(count):
        kind, plant = _KINDS[index % len(_KINDS)]
        world = _World(Random(f"history {seed} {index}"))
        plant(world)
        truth = {"changes": world.changes, "old_reads": world.old_reads, "stale": world.stale}
        runs = [run.exchanges for run in world.runs]
        cases.append(
            {
                "id": f"history-{index:03}",
                "kind": kind,
                "url": world.url,
                "runs": runs,
                "truth": truth,
            }
        )
    return cases
