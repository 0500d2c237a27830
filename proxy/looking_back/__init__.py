"""Look back at a run: its steps, what an agent knew at one, and what came before an effect."""
