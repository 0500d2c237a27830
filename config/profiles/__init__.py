"""Profiles of clients: which parts of their requests are made anew each time. One YAML file a client."""
