"""Isochrones: the pieces of streets that are reached within some time or distance, and areas around these pieces."""
