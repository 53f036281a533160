"""What runs next, and together."""
