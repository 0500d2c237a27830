"""Kinds of faults on purpose, one a file: what each does to a request and its answer."""
