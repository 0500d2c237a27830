"""Run a command many times against one tape, each time otherwise: `bisect`, `sweep`, `explore`."""
