"""The parts of a pending exchange: each is written in its own module alone."""
