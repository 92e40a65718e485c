"""Sequences that are long because a rule says so: look-and-say, cyclic spectra of peptides, permutations.

Each operation takes NumPy or CuPy arrays like all others. `lengths` counts a look-and-say sequence without making it.
"""
