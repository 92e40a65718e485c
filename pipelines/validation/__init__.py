"""Proofs before a run, that distances fit their dtype and no cycle is negative, and certificates of its results."""
