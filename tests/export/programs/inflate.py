"""A process that decompresses its standard input, deflated without a header."""

import sys
import zlib

sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read(), wbits=-15))
