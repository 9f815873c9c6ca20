"""Fields: each describes how one column of a data set becomes tensors."""
