"""Read the kernel's packet counters of a network namespace, per device and protocol."""

import os

PLACE = "/proc/self/net"


def read_counters(folder: int) -> dict[str, int]:
    """Read what was counted since the namespace was made.

    folder: descriptor of `PLACE`, opened by a process of the namespace.
    `packets_out` went through a device other than loopback, of which there is none unless somebody made one.
    Raises: OSError.
    """
    inside, outside = _devices(_lines(folder, "dev"))
    protocols = _tables(_lines(folder, "snmp"))
    try:
        newer = dict(line.split() for line in _lines(folder, "snmp6"))
    except OSError:  # a machine without IPv6
        newer = {}
    return {
        "packets_out": outside,
        "packets_inside": inside,
        "tcp_opened": protocols["Tcp"]["ActiveOpens"],
        "tcp_failed": protocols["Tcp"]["AttemptFails"],
        "udp_sent": protocols["Udp"]["OutDatagrams"] + int(newer.get("Udp6OutDatagrams", 0)),
    }


def _lines(folder: int, name: str) -> list[str]:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)) as file:
        return file.read().splitlines()


def _devices(lines: list[str]) -> tuple[int, int]:
    """Give the packets sent on loopback, and on all others."""
    inside = outside = 0
    for line in lines[2:]:
        name, _, numbers = line.partition(":")
        sent = int(numbers.split()[9])
        if name.strip() == "lo":
            inside += sent
        else:
            outside += sent
    return inside, outside


def _tables(lines: list[str]) -> dict[str, dict[str, int]]:
    """Read a line of names and one of numbers for each protocol."""
    read: dict[str, dict[str, int]] = {}
    for names, numbers in zip(lines[::2], lines[1::2], strict=True):
        kind, _, listed = names.partition(":")
        values = map(int, numbers.partition(":")[2].split())
        read[kind] = dict(zip(listed.split(), values, strict=True))
    return read
