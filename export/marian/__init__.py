"""A folder for Marian and for the browsers' fork of it."""
