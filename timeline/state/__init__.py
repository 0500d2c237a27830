"""The working memory of an agent at a step: the context exactly as it was sent, what entered and left it, what it lost."""
