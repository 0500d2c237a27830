"""What a tape means, pure: exchanges, canonical form, cursor, policy, redaction, divergence.

Values in, values out: nothing here does I/O or knows that mitmproxy exists. Import from the modules;
`model` is the vocabulary that all of them share.
"""
