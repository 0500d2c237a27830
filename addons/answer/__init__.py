"""Answers of our own: refusals with their explanation, and stubs."""
