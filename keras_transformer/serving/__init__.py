"""An HTTP server for whatever `keras_transformer.open` opens, in the protocols of known clients."""
