"""Judging a CSV, planning a study and drawing a figure load neither torch nor transformers."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("table_architectures"):  # counts the miniature's models
        importlib.import_module(module.name)
print(*(name for name in ("torch", "transformers") if name in sys.modules))
"""


@pytest.mark.slow
def test_no_module_of_scores_claims_costs_and_reporting_imports_torch():
    for room in ("scores", "claims", "costs", "reporting"):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT_ALL, f"geosd.{room}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [], room
