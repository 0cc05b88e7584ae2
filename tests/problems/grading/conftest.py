"""The grader's process, which takes seconds to start."""

import pytest

from geosd.problems.grading.typed_grader import TypedGrader


@pytest.fixture(scope="session")
def pool():
    """One process for all comparisons, with thirty seconds for each."""
    with TypedGrader(seconds=30) as pool:
        yield pool
