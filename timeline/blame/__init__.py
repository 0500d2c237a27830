"""Where a value came from: the answer that first had it, or who else said it, through copies, other writings and agents."""
