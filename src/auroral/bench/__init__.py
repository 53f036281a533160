"""Experiments: each prints ratios measured in one run, as a table and as JSON."""
BENCHMARKS = {}
