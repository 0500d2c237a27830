"""A proxy around one command or one file: launcher, sandboxed run, runtime, serve."""
