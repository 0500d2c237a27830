"""What a person looks at: pages, rendered from a store by what the commands call, and a run as one file.

What was recorded comes from models and strangers: a page has it as text and never as markup, and its policy lets nothing run but
our own files. Who may ask, and over what, is the business of `proxy/pages/`.
"""
