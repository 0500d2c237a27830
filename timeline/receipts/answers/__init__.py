"""How the answers of a run matched its tape, and where it diverged."""
