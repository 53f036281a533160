"""Continuous queries as boxes: what a query means is what its boxes mean."""
