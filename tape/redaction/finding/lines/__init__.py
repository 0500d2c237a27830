"""Lines by their grammar: the words of commands, the fields of heads that a text quotes."""
