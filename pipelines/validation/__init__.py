"""Proofs around a run: before it, that distances fit and no cycle is negative; after it, certificates of results."""
