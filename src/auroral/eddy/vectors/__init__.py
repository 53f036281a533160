"""Expressions over batches of tuples, as Spark SQL evaluates them."""
