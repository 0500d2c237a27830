"""Serving: a recorded exchange is given to the client, and what the log says of that."""
