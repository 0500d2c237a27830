"""How runs ended for those who wanted something of them, and which recordings are of the same task."""
