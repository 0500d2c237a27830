"""Answers of the tape that begin before their requests have ended; `addons/bidirectional_streaming.py` has the hooks."""
