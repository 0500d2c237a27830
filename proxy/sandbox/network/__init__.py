"""The network of a sandbox: routes, listeners, DNS, counters and packet capture."""
