"""A client of a server over standard input and output.

Arguments: steps as JSON, then the server's command. A step is a line that is written, a number of lines that are read and
printed, null to kill it, false to
terminate it, or true to wait until it has ended by itself.
"""

import hashlib
import json
import subprocess
import sys

steps, command = json.loads(sys.argv[1]), sys.argv[2:]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    assert process.stdin is not None
    assert process.stdout is not None
    for step in steps:
        if step is None:
            process.kill()
        elif step is False:
            process.terminate()
        elif step is True:
            process.wait()
        elif isinstance(step, str):
            process.stdin.write(step.encode("latin-1") + b"\n")
            process.stdin.flush()
        else:
            for _ in range(step):
                line = process.stdout.readline()
                print(line if len(line) < 300 else hashlib.sha256(line).hexdigest(), flush=True)
    last = process.communicate()[0]
    print(last, process.returncode)
