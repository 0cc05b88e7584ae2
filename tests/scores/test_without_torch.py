"""Judging a CSV, planning a study and drawing a figure load neither torch nor transformers."""

from __future__ import annotations

import pytest
from cases import python

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
    done = python("-c", IMPORT_ALL, *rooms)
    assert done.returncode == 0, done.stderr  # which ends with the first module that does
