"""`playhead doctor`: every installed client is tried through a throwaway proxy."""
