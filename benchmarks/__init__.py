"""Benchmarks: a harness, suites, kernels of the methods compared with, and results. Run by scripts/bench.py."""
