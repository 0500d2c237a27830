"""Header fields in comparison: which count, which are reported, which stand for one another over a run."""
