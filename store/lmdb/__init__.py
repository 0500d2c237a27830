"""The LMDB environment: opening, the writer thread, locks, free space and page checks."""
