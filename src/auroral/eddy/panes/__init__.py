"""Shared partial aggregates of windowed queries."""
