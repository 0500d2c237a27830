"""The sections of the configuration, one file for what belongs together: their keys, and the rules between them."""
