"""Where the agents of a store send things: hosts, how much, since when, and what sorts of personal data."""
