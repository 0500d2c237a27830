"""Responses that Playhead creates itself: refusals with their explanation, and stubs."""
