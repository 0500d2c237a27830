"""An agent that is a Docker image; README.md beside says how it is recorded and replayed."""
