"""How long a replay takes beside the same agent without Playhead, less what its provider took.

    uv run python benchmarks/replaying.py [--steps 40] [--provider-ms 300] [--rounds 5]

A scripted coding agent works in a folder with a repository: in each step it asks its model, edits a file, and runs a test and `git status`
as processes of their own, as the tools of an agent do. The provider answers after `--provider-ms`. *direct* is the whole time of the agent
without Playhead, less what the provider waited; *replay* is that of `playhead replay`, from its start to its end, sandbox and overlay included.
The bar is 1.15 times *direct*. What is added is given in seconds, too: it is mostly the start, so it weighs less the longer a run is.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_BAR = 1.15
_AGENT = """
import json, os, subprocess, sys, urllib.request
url, steps = sys.argv[1], int(sys.argv[2])
messages = [{"role": "user", "content": "make the tests pass"}]
for step in range(steps):
    data = json.dumps({"model": "bench-1", "messages": messages}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = json.load(answer)["choices"][0]["message"]
    with open(f"part{step % 7}.py", "w") as file:
        file.write(f"value = {step}\\n")
    test = subprocess.run([sys.executable, "-B", "-c", f"import part{step % 7}"], capture_output=True, text=True)
    status = subprocess.run(["git", "status", "--short"], capture_output=True, text=True)
    messages += [said, {"role": "user", "content": f"{test.returncode} {status.stdout}"}]
print(messages[-1]["content"])
"""


class _Provider(BaseHTTPRequestHandler):
    """Answers after a while."""

    protocol_version = "HTTP/1.1"
    wait_s = 0.3

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.wait_s)
        text = f"step {len(asked['messages'])}"
        said = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _make_folder(folder: Path) -> Path:
    """Make a working folder with a repository, new each time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number in range(7):
        (folder / f"part{number}.py").write_text("value = 0\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(folder))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run([*git, *words], check=True)
    return folder


def _timed(command: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(
            f"{command[:6]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        )
    return took


def main() -> int:
    """Measure, and print a line a round."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--provider-ms", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    _Provider.wait_s = arguments.provider_ms / 1000
    waited = arguments.steps * _Provider.wait_s
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    playhead = str(Path(sys.executable).parent / "playhead")
    for key in [key for key in os.environ if key.lower().endswith("_proxy")]:
        del os.environ[key]
    rows: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        agent = base / "agent.py"
        agent.write_text(_AGENT)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        words = [sys.executable, str(agent), url, str(arguments.steps)]
        store = ["--store", str(base / "store")]
        folder = _make_folder(base / "work")
        _timed([playhead, "record", *store, "--run", "r", "--", *words], folder)
        print(f"{'':<8}{'direct s':>10}{'replay s':>10}{'ratio':>8}{'added s':>9}")
        for number in range(arguments.rounds + 1):
            direct = _timed(words, _make_folder(base / "work")) - waited
            replay = _timed(
                [playhead, "replay", "r", *store, "--", *words], _make_folder(base / "work")
            )
            if number:  # the first fills caches
                rows.append((direct, replay))
                print(
                    f"{number:<8}{direct:>10.2f}{replay:>10.2f}{replay / direct:>8.2f}{replay - direct:>9.2f}"
                )
    server.shutdown()
    ratio = statistics.median(replay / direct for direct, replay in rows)
    added = statistics.median(replay - direct for direct, replay in rows)
    print(f"median: {ratio:.2f} (bar {_BAR}), {added:.2f} s added")
    return 0 if ratio <= _BAR else 1


if __name__ == "__main__":
    sys.exit(main())
