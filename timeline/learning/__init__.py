"""Learning from two recordings of one task: what differs, and which rules would match it."""
