"""A plain interpreter, one tuple at a time, without Spark: what results must be."""

from auroral.reference.network import Reference

__all__ = ["Reference"]
