"""Path sockets that stay within reach of a sandbox: somebody outside listens at them, and they are not hidden.

A path socket is no business of a network namespace. `strict` lets no socket reach one.
"""

import os

_LISTENS = 0x00010000
"""Flag of a socket that accepts. Source: unix(7), `/proc/net/unix`."""


def list_listening(table: str = "/proc/net/unix") -> list[str]:
    """List the paths at which programs of this machine listen, as far as this network namespace knows of them.

    A socket of datagrams listens without saying so: it is listed too.
    """
    try:
        with open(table, errors="surrogateescape") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return []
    found = {path for line in lines if (path := _path(line))}
    return sorted(found)


def _path(line: str) -> str | None:
    # Num RefCount Protocol Flags Type St Inode Path
    fields = line.split(maxsplit=7)
    if len(fields) < 8 or not fields[7].startswith("/"):
        return None
    accepts = int(fields[3], 16) & _LISTENS
    datagrams = int(fields[4], 16) == 2
    return fields[7] if accepts or datagrams else None


def within_reach(hidden: tuple[str, ...], masked: tuple[str, ...]) -> list[str]:
    """List those that may be connected to from a sandbox with these folders and sockets hidden."""
    prefixes = tuple(f"{folder}/" for folder in hidden)
    return [
        path
        for path in map(os.path.realpath, list_listening())
        if path not in masked and not path.startswith(prefixes) and os.access(path, os.W_OK)
    ]
