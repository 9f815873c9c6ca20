"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) as Keras layers.

The key to shapes in all comments, docstrings and einsum strings:

    B  batch                          D  d_model, the width of the model
    T  target or query length         F  d_ff, the width inside the feed-forward network
    S  source or key length           H  attention heads
    V  vocabulary                     K  size of a head (d_k; d_v where values differ)
    L  length of a key/value cache    N  beam or n-best

Masks are boolean tensors and `True` means "may attend".
"""

from keras_transformer.lazy import lazy_names
from keras_transformer.registration import register

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__, register)
__all__.remove("open")  # `import *` would replace Python's own

register()
