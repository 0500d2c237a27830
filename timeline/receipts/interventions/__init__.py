"""What was done to a run on purpose: gates, injected faults, contracts, limits and a stop."""
