"""Late interaction: a vector for each token of queries and passages, compared by MaxSim."""
