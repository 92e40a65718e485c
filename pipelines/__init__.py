"""Distributed algorithms over Zarr: a client and stores in, a store out."""
