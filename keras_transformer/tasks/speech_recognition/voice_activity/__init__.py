"""Voice activity: which parts of a recording a model of speech reads."""
