"""How a resource changed over runs: who wrote which field, who read the old value afterwards, which write was made on a stale read."""
