"""The state of an open run: its pending exchanges, limits, approvals and counters."""
