"""Delta compression: similar exchanges are stored as deltas, and large base64 as blobs."""
