"""The calls of the REST interface, one module for each concern."""
