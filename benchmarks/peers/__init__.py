"""One file for each implementation that is compared; what they need is in their `make`."""
