"""What every test may ask for: the shared data, and one thread."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two tests run side by side on two cores; a second thread each would slow both sevenfold."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets, or the test is skipped."""
    folder = Path(os.environ.get("GEOSD_SHARED_DATA", ROOT / "../shared/data"))
    if not folder.is_dir():
        pytest.skip(
            f"no shared data at {folder}. Hint: set GEOSD_SHARED_DATA to the folder that holds the"
            " published data sets."
        )
    return folder.resolve()
