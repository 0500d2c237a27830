"""A scripted coding agent: it edits, runs tests, deletes and commits, and asks its model before each step.

    python coding_agent.py URL [rename]

It prints what it saw, so that a run that saw something else is another one. `rename` has it rename a folder, too.
"""

import json
import os
import subprocess
import sys
import urllib.request


def ask(said: object) -> None:
    """Ask the model what is next, with what was seen."""
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]}).encode()
    request = urllib.request.Request(
        f"{sys.argv[1]}/v1/runs", data, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def run(*words: str) -> str:
    """Run a program, as an agent's tool does."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"{done.returncode} {done.stdout}"


def main() -> None:
    """Mend a function until its test passes, and commit that."""
    test = (sys.executable, "-B", "test_sum.py")
    ask(["test", run(*test), sorted(os.listdir())])
    with open("sum.py", "w") as file:
        file.write("def add(a, b):\n    return a + b\n")
    os.unlink("old.py")
    os.makedirs("notes")
    with open("notes/done.txt", "w") as file:
        file.write("mended\n")
    if "rename" in sys.argv:
        os.rename("data", "moved")
    ask(["test", run(*test), run("git", "status", "--short")])
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0")
    said = run("git", *who, "add", "-A") + run("git", *who, "commit", "-qm", "mend")
    ask(["commit", said, run("git", "status", "--short")])
    print(run("git", "log", "--format=%s"), flush=True)


if __name__ == "__main__":
    main()
