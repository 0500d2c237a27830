"""`playhead stdio`: record and play a server that speaks JSON-RPC over standard input and output."""
