"""Shared join state: one per source, with the lineage of its tuples."""
