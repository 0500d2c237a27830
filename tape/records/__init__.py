"""Records: events and exchanges as bytes, versioned and bounded."""
