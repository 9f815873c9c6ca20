"""Several runs whose models answer together."""
