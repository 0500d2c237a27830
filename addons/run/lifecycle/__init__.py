"""How runs begin and end: whose they are, how one is opened, what is asked of others on the way, and how one is sealed."""
