"""Splicing: two recordings of one task, paired answer by answer, and a branch that is given some answers of the other one. Pure."""
