"""Processes and their sockets: the client behind a connection, and an agent's children."""
