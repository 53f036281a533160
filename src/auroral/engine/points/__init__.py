"""Connection points: the history they keep, and the queries that are attached to them."""
