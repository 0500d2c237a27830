"""Real agents against a scripted model on a fake Internet: `just agents`. docs/agents.md is the page that it writes."""
