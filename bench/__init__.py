"""Benchmarks: each row a ratio against the naive way, measured in the same run."""
