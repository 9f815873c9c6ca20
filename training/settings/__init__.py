"""Configuration of a training: its schema, its TOML files and the pages that describe it."""
