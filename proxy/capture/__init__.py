"""Capture of a recorded command's connections, in the command's own network and among its own processes.

The kernel reports each `connect(2)` of the command to a process of ours (a seccomp filter with user notification). That takes the
command's own socket, notes where it was to lead, and connects it to the proxy; everything else goes on as if nobody had looked. This is
capture, not containment: a replay has its sandbox (`proxy/sandbox`).

    launcher ──┬─ the starter: installs the filter on itself, then becomes the command
               ├─ the supervisor: answers each report
               └─ the engine: accepts what the supervisor has connected (`proxy/engine/captured_connections.py`)

Both processes are forked before the launcher has threads and keys. Source: seccomp_unotify(2), pidfd_getfd(2).
"""

KINDS = ("auto", "notify")
"""Words of `sandbox.record` that leave the command where it is, and capture its connections."""
