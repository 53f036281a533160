"""Many standing queries over one stream: shared filters, shared join state, adaptive routes."""
