"""An agent with an MCP server over standard input and output, recorded and played."""
