"""Where tuples come from and where results go; no Spark here."""
