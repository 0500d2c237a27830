"""What a request can be taken for: the readings of hosts, paths and methods, and their normal forms. Pure."""
