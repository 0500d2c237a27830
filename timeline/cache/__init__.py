"""Why a prompt cache missed: the part of the prompt that moved, the lifetime that ran out, or the provider."""
