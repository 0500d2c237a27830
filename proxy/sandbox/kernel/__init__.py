"""The kernel's interfaces that a sandbox needs: system calls, namespaces, filters."""
