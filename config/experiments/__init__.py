"""Files that say how a command is run again: hypothetical answers, variants of a sweep, and schedules of faults."""
