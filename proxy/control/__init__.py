"""The control API: look at the runs of a proxy, stop them, and ask how it is.

    server.py    where it listens, when it begins, how it ends; costs nothing until somebody comes
    serving.py   the HTTP server itself (aiohttp), read at the first connection
    guard.py     who may ask: host, origin, token
    routes.py    the table of all there is to ask
    runs.py, health.py, metrics.py    what is answered
    openapi.py   the same table for machines
    address.py   where a process says that it listens, and the token
    caller.py    who it was
    client.py    how our own commands ask

Nothing here decides on a request of an agent: that is `addons` and `tape`. This file imports nothing, so that a command
that only asks reads no server.
"""
