"""Turns at junctions: forbidden turns and turns that cost something, as arcs of a larger graph."""
