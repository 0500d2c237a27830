"""Move runs between a store and an archive."""
