"""Judging a CSV, planning a study and drawing a figure load neither torch nor transformers."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys
for room in sys.argv[1:]:
    package = importlib.import_module(f"geosd.{room}")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("table_architectures"):  # counts the miniature's models
            importlib.import_module(module.name)
            if {"torch", "transformers"} & {*sys.modules}:
                sys.exit(module.name)
"""


@pytest.mark.slow
def test_no_module_of_scores_claims_costs_and_reporting_imports_torch():
    rooms = ("scores", "claims", "costs", "reporting")
    words = [sys.executable, "-c", IMPORT_ALL, *rooms]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # which ends with the first module that does
