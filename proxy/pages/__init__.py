"""The server of the pages: who may ask, what is read from the store for them, and what they may have done."""
