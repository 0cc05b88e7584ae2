"""What a study's data source does to its plan."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("study", "fetched"), [("smollm2", 0), ("paper_ladder", 1)])
def test_only_a_source_with_a_catalogue_is_fetched(fresh, study, fetched):
    jobs = fresh.planned_jobs("--config", f"study={study}")
    assert (jobs["fetch"], jobs["data"]) == (fetched, 1)


def test_a_module_of_another_source_reruns_nothing(done):
    done.append("src/geosd/problems/sources/word_problems.py", "\n# edited\n")
    done.append("src/geosd/problems/sources/dapo_math.yaml", "\n# edited\n")
    assert done.planned_jobs() == {}
