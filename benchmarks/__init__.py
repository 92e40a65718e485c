"""Benchmarks: a harness, suites, kernels of published methods for comparison, and results. Run scripts/bench.py."""
