"""Branching: what a playback does once it has come to the point where it leaves its tape (`tape/policy/branch.py`)."""
