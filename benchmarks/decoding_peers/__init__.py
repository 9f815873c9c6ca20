"""Peers of `decoding.py`, one file each.

The `make` of a peer gets the fields of a `Model` and a `Case`, the folder that `decoding_files`
filled, the number of threads and the peer's own options. The `metadata` of its result contain the
generated `tokens`.
"""
