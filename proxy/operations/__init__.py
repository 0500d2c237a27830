"""The operations behind the commands: each works on a store, without the command line."""
