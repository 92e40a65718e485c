"""Proofs before and after a run: that distances fit and no cycle is negative; then certificates of the results."""
