"""Stubs: synthetic answers to effects that are not on the tape."""
