"""What a start imports."""

import subprocess
import sys

PROGRAM = """
import sys
import playhead.proxy.run.launcher
from mitmproxy.addons import anticache
from mitmproxy.proxy.layers import quic
names = {name.partition(".")[0] for name in sys.modules}
unused = {"aioquic", "flask", "jinja2", "ldap3", "pyparsing", "service_identity", "werkzeug"}
print(sorted(names & unused), "ruamel.yaml" in sys.modules, anticache.AntiCache.__name__)
try:
    quic.ServerQuicLayer()
except NotImplementedError as error:
    print(error)
from aioquic.h3.connection import H3_ALPN
import pyparsing, ruamel.yaml
print(H3_ALPN, pyparsing.Word.__name__, ruamel.yaml.YAML.__name__)
"""


def test_what_of_mitmproxy_is_not_used_is_not_imported() -> None:
    """A start does without it, what stands in says so, and each can still be imported by its name."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "[] False AntiCache",
        "mitmproxy.proxy.layers.quic is not part of this engine",
        "['h3'] Word YAML",
    ]
