"""The running process: engine and guard, CA and trust, launcher, long-running proxy, command line."""
