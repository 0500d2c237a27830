"""Repeat the clock and randomness of programs that are linked with a C library: see `docs/libc_preload.md`. Off by default."""
