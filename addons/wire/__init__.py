"""Conversion between mitmproxy's objects and ours: messages, handshakes, failures and peers."""
