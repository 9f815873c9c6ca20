"""The configuration of a training: its schema, TOML, and what a run may change."""
