"""Bodies too large for memory: spooled to files and referenced from records."""
