"""The manners of the command line: help by task, names of runs, completion, the first files, the man page."""
