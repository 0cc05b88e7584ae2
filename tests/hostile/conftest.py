"""The tiny runs of tests/training, which the tests here disturb."""

import runpy
from pathlib import Path

_training = runpy.run_path(str(Path(__file__).parents[1] / "training/conftest.py"))
tiny, settings = _training["tiny"], _training["settings"]
