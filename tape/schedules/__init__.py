"""Schedules of faults: which recorded answers an agent is given late, cut, twice or in another order. Drawn from a seed, and from nothing else. Pure."""
