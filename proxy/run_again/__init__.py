"""Run an agent again: from a tape up to a point, and from there as is declared (`docs/branch.md`)."""
