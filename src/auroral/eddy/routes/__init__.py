"""In which order tuples visit the filters, decided on the driver."""
