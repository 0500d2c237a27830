"""What the command of a run did besides what it asked the proxy, and where it ran."""
