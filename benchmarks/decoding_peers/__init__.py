"""One file for each program that decodes; what it needs is in its `make`.

`make` gets the fields of a `Model` and a `Case`, the folder that `decoding_files` filled, the
number of threads and the peer's own options. What it returns has the `tokens` that it finds among
its `facts`.
"""
