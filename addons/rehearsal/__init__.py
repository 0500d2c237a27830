"""A playback that nobody asks for: one recording put to the tape of another, with nothing sent or written."""
