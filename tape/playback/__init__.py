"""Playback of recorded answers: steps with times, and WebSocket messages."""
