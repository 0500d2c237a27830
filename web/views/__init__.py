"""What pages show, as plain values: computed from a store by the functions that the commands call, and by nothing else."""
