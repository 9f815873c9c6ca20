"""Makes the arithmetic of the tests of families importable."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "pretrained"))
