"""What a sweep, a bisection or an exploration has done so far, and what that depends on."""
