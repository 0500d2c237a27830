"""Show the steps of a run: a page in 80 columns, one exchange decoded, a graph, JSON.

Recorded text is hostile: nothing of it is printed but as one line of printable characters, and every line has a width.
"""
