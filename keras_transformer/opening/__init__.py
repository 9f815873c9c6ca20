"""Runs and exports, opened by path, and what they answer to the lines of a text."""
