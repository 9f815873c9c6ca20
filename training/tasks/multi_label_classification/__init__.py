"""Training of classification with several labels, and the choice of its thresholds."""
