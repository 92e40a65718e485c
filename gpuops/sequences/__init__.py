"""Long sequences from short rules: look-and-say, cyclic spectra of peptides, permutations.

The operations take NumPy or CuPy arrays. `look_and_say_lengths` returns lengths without making the terms.
"""
