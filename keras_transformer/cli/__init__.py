"""The command line, the only package here that imports training and export."""
