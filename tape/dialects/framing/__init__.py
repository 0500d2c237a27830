"""Framings of streamed bodies: server-sent events, AWS event streams, lines and pieces of JSON."""
