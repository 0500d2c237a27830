"""What the commands do: each operation on a store, without the command line."""
