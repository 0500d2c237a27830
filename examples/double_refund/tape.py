"""Record the agent against its two fakes, and keep what was recorded as one file.

    python -m playhead.examples.double_refund.tape FILE

The run is called `demo`. The fakes stand at fixed ports, so that an agent elsewhere can be told to ask for the same:
OPENAI_BASE_URL=http://127.0.0.1:9001/v1, PAYMENTS_URL=http://127.0.0.1:9002. Needs what the demo needs.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

RUN = "demo"
PROVIDER, PAYMENTS = 9001, 9002
ENVIRONMENT = {
    "OPENAI_BASE_URL": f"http://127.0.0.1:{PROVIDER}/v1",
    "OPENAI_API_KEY": "sk-demo-this-is-no-secret",
    "PAYMENTS_URL": f"http://127.0.0.1:{PAYMENTS}",
}
_HERE = "playhead.examples.double_refund"
_PLAYHEAD = (sys.executable, "-m", "playhead.proxy.cli")


def record_tape(target: Path) -> None:
    """Write the tape; takes some four seconds.

    Raises: subprocess.CalledProcessError, where the agent or Playhead failed, which they have said then.
    """
    agent = (sys.executable, "-m", f"{_HERE}.agent")
    with tempfile.TemporaryDirectory() as store, _fake("fake_provider", PROVIDER):
        # Later than the agent waits, so that it asks again.
        with _fake("fake_payments", PAYMENTS, "--delay", "1.6"):
            recording = (*_PLAYHEAD, "record", "--run", RUN, "--store", store, "--", *agent)
            subprocess.run(recording, env=os.environ | ENVIRONMENT, check=True)
        export = (*_PLAYHEAD, "export", RUN, "--store", store, "--tape", str(target))
        subprocess.run(export, check=True)


@contextlib.contextmanager
def _fake(name: str, port: int, *flags: str) -> Iterator[None]:
    command = (sys.executable, "-m", f"{_HERE}.{name}", "--port", str(port), *flags)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()  # it is ready, or has ended
            yield
        finally:
            process.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    record_tape(parser.parse_args().file)
