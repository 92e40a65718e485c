"""Stores written to files of other programs: tables, NumPy arrays, Matrix Market."""
