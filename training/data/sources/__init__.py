"""Sources of data of several kinds, with one interface."""
