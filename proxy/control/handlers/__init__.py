"""Handlers of the control API, one file a subject, and the table of all routes."""
