"""Grouped filters and access predicates: which queries a tuple satisfies."""
