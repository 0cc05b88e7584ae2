"""The programs of analysis/ that reckon with the search world."""

import importlib
import sys

import pytest


@pytest.fixture(scope="session")
def analysis(root):
    """A program by its name; programs find each other as they do when they are run."""

    def imported(name):
        sys.path.insert(0, str(root / "analysis"))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(root / "analysis"))

    return imported
