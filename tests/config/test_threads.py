"""How jobs that a study has side by side share a machine's cores."""

from __future__ import annotations

import pytest

from geosd.config import load, resolve_study
from geosd.config.job_counts import threads_by_job_count

SMOLLM2 = "smollm2-135m"


@pytest.fixture(scope="module")
def study(root):
    return resolve_study(load(root / "params.yaml"), "smollm2")


def with_seeds(study, *seeds):
    overlay = study.overlay.model_copy(update={"seeds": list(seeds)})
    studies = {**study.params.studies, study.name: overlay}
    return resolve_study(study.params.model_copy(update={"studies": studies}), study.name)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (5, 5), (64, 8), (None, 8)])
def test_a_training_alone_takes_all_cores_that_it_can_use(study, cores, threads):
    assert threads_by_job_count("train", study, SMOLLM2, cores) == threads
    assert threads_by_job_count("pool", study, SMOLLM2, cores) == threads


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 2), (5, 2)])
def test_two_jobs_take_half_of_the_cores_each(study, cores, threads):
    assert threads_by_job_count("train", with_seeds(study, 0, 1), SMOLLM2, cores) == threads
    # The samples of pi_0 and of the student are two jobs of one kind.
    assert threads_by_job_count("evaluate", study, SMOLLM2, cores) == threads
    assert threads_by_job_count("evaluate_pi_0", study, SMOLLM2, cores) == threads


def test_three_jobs_on_two_cores_take_one_each(study):
    assert threads_by_job_count("train", with_seeds(study, 0, 1, 2), SMOLLM2, 2) == 1


@pytest.mark.parametrize(
    ("memory_mb", "threads"), [(None, 1), (31_000, 1), (29_000, 2), (19_999, 4), (9000, 4)]
)
def test_jobs_that_the_memory_has_no_room_for_take_no_share(study, memory_mb, threads):
    """A training asks for 10,000 MB; of the four, two have room in 29,000 and one in less."""
    four = with_seeds(study, 0, 1, 2, 3)
    assert threads_by_job_count("train", four, SMOLLM2, 4, memory_mb) == threads


@pytest.mark.parametrize("rule", ["pool", "train", "evaluate", "states"])
def test_small_models_and_those_on_gpus_keep_one_thread(study, rule):
    for name, model in (("quick", "mini-qwen3"), ("paper", "qwen3-8b")):
        assert threads_by_job_count(rule, resolve_study(study.params, name), model, 64) == 1
