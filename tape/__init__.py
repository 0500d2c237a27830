"""Pure functions over a tape: canonical form, matching, policy, redaction, divergence.

Values in, values out: nothing here does I/O or knows that mitmproxy exists. Import from the modules;
`exchange` is the vocabulary that all of them share.
"""
