"""The HTTP side of the control API: routes, access, errors and the server."""
