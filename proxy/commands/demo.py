"""`playhead demo`: record the double refund, replay it with its services stopped, replay the fix, and prove two fixes by branches.

The demo is a person at a terminal: it starts the two fakes of `examples/double_refund`, runs `playhead`
as anyone would (a process each time, nothing imported from the engine), reads the receipts as JSON and
compares what happened with what the story says. The first thing that is not as told ends it.
"""

import contextlib
import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, TextIO
from urllib.parse import urlsplit

import psutil

from ...tape.exit_codes import ExitCode
from ...tape.visible_text import show_visibly
from ..sandbox.preflight import works
from ..standard_streams import wants_colour

PLAYHEAD = (sys.executable, "-m", "playhead.proxy.cli")
STEPS = 8

_STORY = "playhead.examples.double_refund"
_NEEDED = ("openai", "httpx")
"""What the demo's agent imports and Playhead itself does not."""
_LARGEST = ("aiohttp", "mitmproxy", "openai", "playhead.proxy")
"""Packages whose bytecode, where it is there, says that that of others is."""
_LATE_S = 1.6
"""How late the payment API answers: well after the agent's timeout of a second, and no longer."""
_START_S = 20.0
"""How long a fake may take until it is ready, on a slow machine with cold caches."""
_COMMAND_S = 60.0
_STOP_S = 5.0
_LAST_LINES = 3
"""Lines that an agent says once it has left its tape, and just before."""

Receipt = Mapping[str, Any]


def run_demo(
    store: Path | None = None,
    *,
    keep: bool = False,
    out: TextIO | None = None,
    playhead: Sequence[str] = PLAYHEAD,
) -> int:
    """Play the story of the double refund and check every step of it; takes some twelve seconds.

    store: where the tapes go, and stay; None takes a fresh folder that is removed at the end.
    keep: do not remove that folder.
    out: where the story is written, by default stdout; colour only if it is a terminal.
    playhead: the command to try, without its arguments.
    Returns 0 if every step went as told; 1 if one did not, which the story then says; 2 if a package
    is missing; 130 after Ctrl-C. Every process it started is gone when it returns or raises.
    Raises: SystemExit(143) on SIGTERM; OSError, where no folder can be made.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"playhead: the demo's agent needs the package {missing[0]}, which is not installed;"
            " install it with: pip install 'playhead[demo]'",
            file=sys.stderr,
        )
        return 2
    printer = _Printer(out or sys.stdout)
    work = Path(tempfile.mkdtemp(prefix="playhead-demo-"))
    demo = _Demo(printer, work, (store or work / "store").absolute(), tuple(playhead))
    try:
        with _terminable(), contextlib.closing(demo):
            demo.play(kept=keep or store is not None)
    except _Unmet as unmet:
        printer.failure(demo.step, unmet)
        return 1
    except KeyboardInterrupt:
        printer.line("interrupted")
        return ExitCode.INTERRUPTED
    finally:
        if keep and store is None:
            printer.line(f"kept: {work / 'store'}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    return 0


class _Unmet(Exception):
    """A step of the story went otherwise than told."""

    def __init__(self, what: str, expected: object, found: object, log: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.found = found
        self.log = log


class _Printer:
    """Write the story, plainly or with a little weight and colour."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._styled = wants_colour(out)

    def heading(self, step: int, text: str) -> None:
        self._write("\n" + self._style("1", f"{step}  {text}"))

    def line(self, text: str = "") -> None:
        self._write(f"   {text}" if text else "")

    def command(self, arguments: Sequence[str]) -> None:
        self.line(self._style("36", "$ " + " ".join(arguments)))

    def quote(self, text: str) -> None:
        self.line("| " + _plain(text))

    def good(self, text: str) -> None:
        self.line(self._style("32", f"ok: {text}"))

    def notable(self, text: str) -> None:
        self.line(self._style("1;33", text))

    def failure(self, step: int, unmet: _Unmet) -> None:
        self.line(self._style("1;31", f"step {step} of {STEPS} failed: {unmet.what}"))
        self.line(f"expected: {_plain(unmet.expected)}")
        self.line(f"found:    {_plain(unmet.found)}")
        for text in unmet.log.splitlines()[-12:]:
            self.quote(text)
        self.line("look closer with: playhead demo --keep, and playhead doctor")

    def _style(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text

    def _write(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class _Demo:
    """The eight steps, and the processes that they start."""

    def __init__(
        self, printer: _Printer, work: Path, store: Path, playhead: tuple[str, ...]
    ) -> None:
        self.step = 0
        self._printer = printer
        self._work = work
        """The commands run here, so that no `playhead.yaml` of the reader's changes the story."""
        self._store = store
        self._playhead = playhead
        self._run = f"double-refund-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        self._where = () if works() else ("--no-sandbox",)
        """Where the replays run: in the sandbox, if this machine has one."""
        self._children: list[subprocess.Popen[str]] = []
        self._environment = dict(os.environ)
        if "PYTHONDONTWRITEBYTECODE" in os.environ and not all(map(_has_bytecode, _LARGEST)):
            # Eight processes would compile the same modules; whoever wants no bytecode gets none that stays.
            del self._environment["PYTHONDONTWRITEBYTECODE"]
            self._environment["PYTHONPYCACHEPREFIX"] = str(work / "bytecode")

    def play(self, *, kept: bool) -> None:
        """Go through all steps; raises `_Unmet` at the first that is not as told."""
        started = time.monotonic()
        self._printer.line("A support agent, a late payment API and a refund that was paid twice.")
        self._begin("Start a model provider and a payment API, both on loopback")
        provider, payments = self._start_fakes()
        self._begin("Record the agent, unmodified")
        recorded = self._record(payments.url)
        self._begin("Stop both services")
        self._stop_fakes(provider, payments)
        self._begin("Replay the same agent: every answer comes from the tape")
        self._replay_same(recorded)
        self._begin("Replay the fixed agent against the same tape")
        first, asked = self._replay_fixed()
        self._begin("Branch: what if the fixed agent had been told of the refund it made?")
        self._restart(provider)
        refund = self._get_refund(first)
        self._branch_fixed(refund, asked - 1)
        self._begin("Branch: another fix, which repeats a refund under its idempotency key")
        self._branch_keyed(refund, asked)
        self._begin("What this was")
        self._close_story(time.monotonic() - started, kept)

    def close(self) -> None:
        """Stop whatever still runs."""
        for child in self._children:
            _stop(child)
            if child.stdout is not None:
                child.stdout.close()

    def _begin(self, title: str) -> None:
        self.step += 1
        self._printer.heading(self.step, title)

    def _start_fakes(self) -> tuple["_Fake", "_Fake"]:
        names = {"fake_provider": (), "fake_payments": ("--delay", str(_LATE_S))}
        fakes = [self._start_fake(name, *flags) for name, flags in names.items()]
        for fake in fakes:
            fake.await_ready()
        provider, payments = fakes
        self._environment |= {
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "OPENAI_API_KEY": "sk-demo-this-is-no-secret",
            "PAYMENTS_URL": payments.url,
            "PYTHONUNBUFFERED": "1",
        }
        self._printer.line(f"provider  {provider.url}  the OpenAI chat API, streaming, scripted")
        self._printer.line(f"payments  {payments.url}  pays at once, answers {_LATE_S} s later")
        return provider, payments

    def _start_fake(self, name: str, *flags: str) -> "_Fake":
        log = self._work / f"{name}.log"
        command = [sys.executable, "-m", f"{_STORY}.{name}", "--port", "0", *flags]
        return _Fake(name, self._popen(command, log), log)

    def _record(self, payments: str) -> list[str]:
        ended, said = self._agent("agent", "record", "--run", self._run)
        ended.expect(0)
        ledger = _get_ledger(payments)
        names = [refund["id"] for refund in ledger]
        _expect("refunds in the payment API's ledger", ["re_1", "re_2"], names)
        for refund in ledger:
            paid = f"{refund['amount'] / 100:.2f} {refund['currency']}"
            self._printer.line(f"ledger: {refund['id']}  {refund['charge']}  {paid}")
        self._printer.notable(
            "One complaint, one timeout, two refunds: the customer was paid twice."
        )
        return said

    def _stop_fakes(self, *fakes: "_Fake") -> None:
        for fake in fakes:
            _stop(fake.process)
        for fake in fakes:
            _expect(f"{fake.name} at {fake.url}", "connection refused", _knock(fake.url))
            self._printer.good(f"{fake.url} is closed: connection refused")

    def _replay_same(self, recorded: list[str]) -> None:
        ended, said = self._agent("agent", "replay", self._run, *self._where)
        ended.expect(0)
        _expect("the agent's output", recorded, said, ended.log)
        self._printer.good("exit code 0, and the agent printed the same lines")
        receipt = self._receipt(1)
        _expect("receipt: parent", self._run, receipt.get("parent"))
        _expect("receipt: faithful", True, receipt.get("faithful"))
        counts = receipt.get("counts") or {}
        strays = {key: counts.get(key) for key in ("live", "refused", "unused")}
        _expect("receipt: counts", {"live": 0, "refused": 0, "unused": 0}, strays)
        self._printer.line(f"receipt of {receipt.get('run')}: {_counted(counts)}")
        self._printer.line("what the agent did to the world, had it not been for the tape:")
        refunds = [effect for effect in receipt["effects"] if _is_refund("POST", effect)]
        for effect in refunds:
            self._show_effect(effect)
        _expect("receipt: refunds among the effects", 2, len(refunds))
        note = str(refunds[1].get("note") or "")
        if "possible duplicate" not in note.lower():
            raise _Unmet("receipt: note on the second refund", "possible duplicate", note)

    def _replay_fixed(self) -> tuple[int, int]:
        """Give the seq of the first refund, and of what was asked in the place of the second."""
        ended, _ = self._agent("agent_fixed", "replay", self._run, *self._where)
        ended.expect(ExitCode.DIVERGED)
        self._printer.good(
            f"exit code {ExitCode.DIVERGED}: this agent does not do what the tape holds"
        )
        receipt = self._receipt(2)
        _expect("receipt: faithful", False, receipt.get("faithful"))
        divergences = receipt["divergences"]
        self._printer.line("what differed:")
        for divergence in divergences:
            self._show_divergence(divergence)
        unused = receipt["unused"]
        for exchange in unused:
            self._printer.line(f"  unused: {exchange.get('seq')}  {_request(exchange)}")
        asked = [f"{each.get('method')} {each.get('url')}" for each in divergences]
        if not any(_is_refund("GET", divergence) for divergence in divergences):
            raise _Unmet("receipt: divergences", "GET /v1/refunds?charge=ch_1007", asked)
        left = sum(_is_refund("POST", exchange) for exchange in unused)
        _expect("receipt: refunds left unused on the tape", 1, left)
        paid = sum(_is_refund("POST", effect) for effect in receipt["effects"])
        _expect("receipt: refunds among the effects", 1, paid)
        self._printer.notable(
            "It looked before paying again. The second refund was never asked for."
        )
        looked = next(one for one in divergences if _is_refund("GET", one))
        first = next(one for one in receipt["effects"] if _is_refund("POST", one))
        return int(first["seq"]), int(looked["seq"])

    def _restart(self, provider: "_Fake") -> None:
        """Start the provider again where it was; the payment API stays closed."""
        again = self._start_fake("fake_provider", "--port", str(urlsplit(provider.url).port))
        again.await_ready()
        self._printer.line(
            f"the model may be asked again at {again.url}; the payment API stays off"
        )

    def _get_refund(self, seq: int) -> dict[str, Any]:
        """Read from the tape what the first refund was answered, after its agent had given up."""
        shown = self._read_json("show", self._run, str(seq))
        try:
            refund = json.loads(shown["response"]["body"])
        except (KeyError, TypeError, ValueError) as error:
            raise _Unmet(f"answer of exchange {seq}", "a refund", repr(error)) from error
        _expect(f"answer of exchange {seq}", "re_1", refund.get("id"))
        return dict(refund)

    def _branch_fixed(self, refund: Mapping[str, Any], at: int) -> None:
        """Give the agent that looks the answer that follows from the recorded refund."""
        answer = {"object": "list", "has_more": False, "data": [refund]}
        place = urlsplit(self._environment["PAYMENTS_URL"]).netloc
        listed = [{"match": f"GET http://{place}/v1/refunds*", "answer": {"json": answer}}]
        # JSON is YAML.
        (self._work / "answers.yaml").write_text(json.dumps({"answers": listed}))
        self._branch("agent_fixed", 3, "--at", str(at), "--answers", "answers.yaml")
        self._printer.notable("It found the refund, told the customer, and paid nothing.")

    def _branch_keyed(self, refund: Mapping[str, Any], at: int) -> None:
        """Answer the second refund as a service does that honours the key: from the first outcome."""
        (self._work / "first.json").write_text(json.dumps(refund))
        effects = self._branch("agent_keyed", 4, "--at", str(at), "--answer", "first.json")
        note = str(effects[-1].get("note") or "")
        if "safe retry" not in note.lower():
            raise _Unmet("receipt: note on the second refund", "safe retry", note)
        self._printer.notable("SAFE RETRY: answered from the first outcome, so paid once.")

    def _branch(self, module: str, number: int, *words: str) -> list[dict[str, Any]]:
        """Run an agent in a branch in which the model may be asked; give its refunds, which are all from the tape or hypothetical."""
        live = ("--live", "inference", "--reason", "demo", "--yes")
        flags = ("branch", self._run, *words, *live, *self._where)
        ended, said = self._agent(module, *flags, last=_LAST_LINES)
        ended.expect(0)
        last = said[-1] if said else ""
        if "re_1" not in last:
            raise _Unmet("the agent's last words", "refund re_1", last, ended.log)
        receipt = self._receipt(number)
        counts = receipt.get("counts") or {}
        found = {key: counts.get(key) for key in ("hypothetical", "live", "refused", "stubbed")}
        expected = {"hypothetical": 1, "live": 1, "refused": 0, "stubbed": 0}
        _expect("receipt: counts", expected, found)
        refunds = [effect for effect in receipt["effects"] if _is_refund("POST", effect)]
        for effect in refunds:
            self._show_effect(effect)
        return refunds

    def _close_story(self, took_s: float, kept: bool) -> None:
        self._printer.line(
            "The incident is on tape: it happens again at will, costs nothing, pays nobody,"
        )
        self._printer.line(
            "says of a changed agent where it begins to do something else, and proves its fix."
        )
        self._printer.line(f"Every step succeeded, in {took_s:.1f} s.")
        self._printer.line()
        self._printer.line("next:")
        if kept:
            for words in (("runs", "--tree"), ("show", self._run), ("receipt", f"{self._run}@2")):
                self._printer.command(["playhead", *words, "--store", str(self._store)])
        else:
            self._printer.command(["playhead", "demo", "--keep", "   # keeps the tape to look at"])
        self._printer.command(["playhead", "record", "--run", "mine", "--", "YOUR COMMAND"])
        self._printer.command(["playhead", "replay", "mine", "--", "YOUR COMMAND"])

    def _agent(
        self, module: str, verb: str, *words: str, last: int | None = None
    ) -> tuple["_Ended", list[str]]:
        """Run an agent under `playhead`; returns how it ended and its lines of output.

        last: how many of these are shown, once it has ended; None shows all as they come.
        """
        flags = [verb, *words, "--store", str(self._store), "--"]
        self._printer.command(["playhead", *flags, "python", "-m", f"{_STORY}.{module}"])
        said = []
        with self._playing(*flags, sys.executable, "-m", f"{_STORY}.{module}") as child:
            assert child.process.stdout is not None
            for text in child.process.stdout:
                said.append(text.rstrip("\n"))
                if last is None:
                    self._printer.quote(said[-1])
        for text in said[-last:] if last is not None else ():
            self._printer.quote(text)
        return child, said

    def _receipt(self, replay: int) -> Receipt:
        run = f"{self._run}@{replay}"
        receipt = self._read_json("receipt", run)
        for key in ("effects", "divergences", "unused"):
            found = receipt.get(key)
            if not (isinstance(found, list) and all(isinstance(each, dict) for each in found)):
                raise _Unmet(f"receipt of {run}: {key}", "a list of JSON objects", found)
        return receipt

    def _read_json(self, verb: str, *words: str) -> dict[str, Any]:
        """Read what a command prints as JSON."""
        with self._playing(verb, *words, "--json", "--store", str(self._store)) as child:
            assert child.process.stdout is not None
            text = child.process.stdout.read()
        child.expect(0)
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise _Unmet(f"playhead {verb} {' '.join(words)}", "a JSON object", text, child.log)
        return found

    @contextlib.contextmanager
    def _playing(self, *arguments: str) -> Iterator["_Ended"]:
        """Run `playhead` with these arguments until it ends, or its time is up."""
        name = f"playhead {arguments[0]}"
        log = self._work / f"{name.replace(' ', '-')}.log"
        ended = _Ended(name, self._popen([*self._playhead, *arguments], log), log)
        deadline = threading.Timer(_COMMAND_S, ended.stop)
        deadline.daemon = True
        deadline.start()
        try:
            yield ended
            ended.process.wait()
        finally:
            deadline.cancel()

    def _popen(self, command: Sequence[str], log: Path) -> subprocess.Popen[str]:
        with log.open("wb") as stderr:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._work,
                env=self._environment,
                encoding="utf-8",
                errors="backslashreplace",
            )
        self._children.append(child)
        return child

    def _show_effect(self, effect: Mapping[str, Any]) -> None:
        self._printer.line(f"  {_plain(effect.get('seq')):>3}  {_request(effect)}")
        for key in ("summary", "answered_by", "outcome"):
            if effect.get(key):
                self._printer.line(f"       {key.replace('_', ' ')}: {_plain(effect[key])}")
        if effect.get("note"):
            self._printer.notable(f"       {_plain(effect['note'])}")

    def _show_divergence(self, divergence: Mapping[str, Any]) -> None:
        kind, text = _plain(divergence.get("kind")), _plain(divergence.get("text") or "")
        self._printer.notable(f"  {kind}: {_request(divergence)}")
        if text:
            self._printer.line(f"    {text}")
        for difference in divergence.get("differences") or ():
            recorded, asked = difference.get("recorded"), difference.get("asked")
            place = _plain(difference.get("place"))
            self._printer.line(f"    {place}: recorded {_plain(recorded)}, asked {_plain(asked)}")


class _Ended:
    """A `playhead` command: running inside its `with`, ended after it."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self.process = process
        self._log = log
        self._late = False

    def stop(self) -> None:
        """End it because its time is up."""
        self._late = True
        _stop(self.process)

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return _read(self._log)

    def expect(self, code: int) -> None:
        """Check its exit code."""
        if self._late:
            late = f"still running after {_COMMAND_S:.0f} s"
            raise _Unmet(f"exit code of {self.name}", code, late, self.log)
        _expect(f"exit code of {self.name}", code, self.process.returncode, self.log)


class _Fake:
    """One of the two services; `url` is known once it is ready."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self.process = process
        self.url = ""
        self._log = log

    def await_ready(self) -> None:
        """Read the line in which it says where it listens."""
        assert self.process.stdout is not None
        # A fake that says nothing is stopped, and then its output ends: no poll, no thread to join.
        deadline = threading.Timer(_START_S, _stop, [self.process])
        deadline.daemon = True
        deadline.start()
        text = self.process.stdout.readline()
        deadline.cancel()
        word, _, self.url = text.strip().partition(" ")
        if word != "ready" or not self.url:
            expected = f"'ready http://127.0.0.1:PORT' within {_START_S:.0f} s"
            raise _Unmet(f"start of {self.name}", expected, repr(text), _read(self._log))


def _has_bytecode(package: str) -> bool:
    """Say whether Python need not compile a package again."""
    found = importlib.util.find_spec(package)
    return found is not None and found.cached is not None and Path(found.cached).exists()


def _stop(child: subprocess.Popen[str]) -> None:
    """Terminate a process; if it does not go, kill it and what it started."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            _kill_tree(child)
            child.wait()


def _kill_tree(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(child.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    child.kill()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the demo, so that it stops what it started; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _expect(what: str, expected: object, found: object, log: str = "") -> None:
    if found != expected:
        raise _Unmet(what, expected, found, log)


def _get_ledger(url: str) -> list[dict[str, Any]]:
    """Ask the payment API what really happened."""
    # http.client on purpose: it takes no proxy from the environment.
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/ledger")
        refunds: list[dict[str, Any]] = json.load(connection.getresponse())["refunds"]
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Unmet(f"{url}/ledger", "a list of refunds", error) from error
    finally:
        connection.close()
    return refunds


def _knock(url: str) -> str:
    """Try to connect, and say what came of it."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname, place.port or 0), timeout=5).close()
    except ConnectionRefusedError:
        return "connection refused"
    except OSError as error:
        return str(error)
    return "connected"


def _is_refund(method: str, entry: Mapping[str, Any]) -> bool:
    path = urlsplit(str(entry.get("url"))).path
    return entry.get("method") == method and path == "/v1/refunds"


def _request(entry: Mapping[str, Any]) -> str:
    return f"{_plain(entry.get('method'))} {_plain(entry.get('url'))}"


def _counted(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{_plain(number)} {_plain(word)}" for word, number in counts.items())


def _plain(value: object, longest: int = 160) -> str:
    """Make text safe for a terminal: one line, nothing but printable characters, cut."""
    text = value if isinstance(value, str) else repr(value)
    text = show_visibly(text)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _read(log: Path) -> str:
    return log.read_text("utf-8", "backslashreplace") if log.exists() else ""
