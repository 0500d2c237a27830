"""Lines of heads that a text quotes."""
