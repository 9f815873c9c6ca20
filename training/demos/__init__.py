"""Generated data of the demos, apart from that of the README. Nothing is downloaded."""
