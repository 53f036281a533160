"""Debugging a running network: pausing, stepping, breakpoints, traces."""
