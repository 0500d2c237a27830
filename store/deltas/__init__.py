"""Delta compression: conversations, similar bodies and base64 blobs are stored once."""
