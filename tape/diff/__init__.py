"""Differences: the nearest recorded exchange, the first difference, and the rule that would ignore it."""
