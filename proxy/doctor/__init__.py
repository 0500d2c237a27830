"""`playhead doctor`: test every installed client through a temporary proxy."""
