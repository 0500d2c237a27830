"""Compare two runs: what each did in order, where they first differ, and what follows from that."""
