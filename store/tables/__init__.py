"""The tables of a store, one module each."""
