"""WebSockets, message by message: one recorded, one from the tape; `addons/websocket.py` has the hooks."""
