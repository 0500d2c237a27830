"""The file system of a sandbox: mounts, masked places, bubblewrap and reachable sockets."""
