"""Edits of what is on a tape, for a branch: another answer at its point, or the model call there asked otherwise.

What an edit makes can be read by the dialect of its request; else ValueError says at which JSON path it cannot.
"""
