"""What a start imports."""

import subprocess
import sys

PROGRAM = """
import sys
import playhead.proxy.launcher
from mitmproxy.addons import anticache
names = {name.partition(".")[0] for name in sys.modules}
print(sorted(names & {"flask", "jinja2", "ldap3", "werkzeug"}), anticache.AntiCache.__name__)
"""


def test_addons_of_mitmproxy_that_are_not_used_are_not_imported() -> None:
    """A start does without them and what they need; each can still be imported by its name."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert done.stdout == b"[] AntiCache\n"
