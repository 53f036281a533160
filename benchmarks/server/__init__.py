"""What the server adds: how fast tuples get in, how soon results are seen, what it costs."""
