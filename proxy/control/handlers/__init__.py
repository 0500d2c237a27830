"""Handlers of the control API, one file per subject, and the table of all routes."""
