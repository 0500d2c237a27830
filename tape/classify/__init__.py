"""The class of a request: model call, read, effect or telemetry."""
