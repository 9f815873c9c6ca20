"""The command line. It alone knows training and export."""
