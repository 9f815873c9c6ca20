"""Training configurations: their schema, their TOML files and the pages that describe them."""
