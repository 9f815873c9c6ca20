"""Task of a package of its own: how often a letter occurs in a text, with a head that counts."""
