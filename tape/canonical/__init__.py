"""The canonical form of a request: the parts that matching keeps, in one normal order."""
