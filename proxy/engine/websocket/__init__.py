"""WebSocket layers: frames, recording and playback."""
