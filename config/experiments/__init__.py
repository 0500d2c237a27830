"""Files that say how a command is run many times: variants of a sweep, and schedules of faults."""
