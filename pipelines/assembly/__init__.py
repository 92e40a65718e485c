"""Contigs of a genome from reads of it: a use of Euler circuits, not an assembler to rely on (see `assemble`)."""
