"""Attempts that came to nothing: connections on which nothing was asked that could be answered."""
