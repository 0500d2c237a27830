"""Deciding: what is known of a request, what the tape has for it, and what is about to leave."""
