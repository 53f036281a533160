"""Tables in databases: statements made ready for a store, the stores, and their values."""
