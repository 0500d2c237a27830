"""What recording a step of one conversation costs as it grows to a megabyte: CPU of the proxy, by thread.

    uv run python benchmarks/growing.py [--to-kb 1000] [--steps-each 20] [--beside CHECKOUT]

One agent talks over one connection, TLS on both sides, to a provider on loopback. Its first request has a few KB; each further one
has what was said before, and about a KB more. At each size of a row `--steps-each` steps are taken one after the other. *writer* is
the thread that searches, packs and stores; *loop* is the one that talks. Both are the kernel's own clocks of the threads, so
other work on the machine makes them larger by its share of the caches alone. With `--beside` another checkout's
Playhead takes the same steps in turns.
"""

import argparse
import http.client
import json
import ssl
import statistics
import sys
import tempfile
from pathlib import Path

import proxies
from workloads import CHAT, HOST, KEY, token

_SIZES_KB = (8, 60, 125, 250, 500, 1000)
_BAR_MS = 1.5
_WORDS = [
    "the",
    "run",
    "reads",
    "a",
    "file",
    "of",
    "orders",
    "and",
    "writes",
    "what",
    "it",
    "found",
    "into",
    "a",
    "table",
    "that",
    "nobody",
    "had",
    "asked",
    "for",
]


def _text(number: int, size: int) -> str:
    """Give text that no other number gives."""
    state = number * 2654435761 + 12345
    words = []
    length = 0
    while length < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        word = f"{_WORDS[(state >> 33) % len(_WORDS)]}{(state >> 40) % 997}"
        words.append(word)
        length += len(word) + 1
    return " ".join(words)


class _Talk:
    """One conversation through one proxy."""

    def __init__(self, running: proxies.Running, ca: Path, port: int) -> None:
        self._pid = running.pid
        context = ssl.create_default_context(cafile=str(ca))
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", running.port, context=context, timeout=60
        )
        self._connection.set_tunnel(HOST, port)
        self._messages: list[str] = []
        self._size = 0
        self._step = 0

    def grow(self, size: int) -> None:
        """Say so much that the next request has `size` bytes."""
        while self._size < size:
            self._say()

    def _say(self) -> None:
        self._step += 1
        role = ("user", "assistant")[self._step % 2]
        message = json.dumps(
            {"role": role, "content": _text(self._step, 900)}, separators=(",", ":")
        )
        self._messages.append(message)
        self._size += len(message) + 1

    def step(self) -> dict[str, float]:
        """Take one more step; gives the CPU seconds of each thread, by its number."""
        self._say()
        name = token(self._step).decode()
        body = f'{{"id":"{name}","model":"bench-1","messages":[{",".join(self._messages)}]}}'
        before = _threads(self._pid)
        self._connection.request(
            "POST",
            f"{CHAT}?as=llm",
            body.encode(),
            {"content-type": "application/json", "authorization": f"Bearer {KEY.decode()}"},
        )
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200 or name.encode() not in said[:64]:
            raise SystemExit(f"step {self._step}: {answer.status} {said[:200]!r}")
        after = _threads(self._pid)
        return {thread: used - before.get(thread, 0.0) for thread, used in after.items()}


def _threads(pid: int) -> dict[str, float]:
    """Give the CPU seconds of each thread of a process."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to-kb", type=int, default=1000)
    parser.add_argument("--steps-each", type=int, default=20)
    parser.add_argument("--beside", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, proxies.upstream(Path(name)) as port:
        folder = Path(name)
        tools = [proxies.playhead("record", folder, folder / "ours", "r", name="ours")]
        if arguments.beside:
            other = proxies.playhead("record", folder, folder / "other", "r", name="other")
            python = str(arguments.beside / ".venv" / "bin" / "python")
            tools.append(proxies.Tool(other.name, (python, *other.argv[1:]), says_ready=True))
        with proxies.running(tools, folder) as running:
            talks = {
                key: (
                    _Talk(one, Path(f"{folder / key}-ca") / "playhead-ca-cert.pem", port),
                    str(one.pid),
                )
                for key, one in running.items()
            }
            print(f"{'KB':>6} {'':<6} {'writer ms':>10} {'loop ms':>10}")
            worst = 0.0
            for size in [size for size in _SIZES_KB if size <= arguments.to_kb]:
                steps: dict[str, list[dict[str, float]]] = {key: [] for key in talks}
                for talk, _ in talks.values():
                    talk.grow(size * 1000)
                for _ in range(arguments.steps_each):
                    for key, (talk, _) in talks.items():
                        steps[key].append(talk.step())
                for key, (_, main_thread) in talks.items():
                    loop = statistics.median(step[main_thread] for step in steps[key])
                    rest = statistics.median(
                        sum(step.values()) - step[main_thread] for step in steps[key]
                    )
                    print(f"{size:>6} {key:<6} {rest * 1e3:>10.2f} {loop * 1e3:>10.2f}", flush=True)
                    if key == "ours":
                        worst = rest * 1e3
    print(f"writer, at the largest size: {worst:.2f} ms (bar {_BAR_MS})")
    return 0 if worst <= _BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
