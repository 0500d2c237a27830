"""Finding secrets: a table of formats, values behind names, and the tests that tell a secret from a word."""
