"""A study's schedule: closed forms, and a study that was run."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from geosd.costs.schedule import (
    ScheduledTask,
    most_scheduled,
    schedule_duration,
    scheduled_start_times,
)


def takes(tasks, **bounds):
    return schedule_duration(tasks, scheduled_start_times(tasks, bounds))


@pytest.mark.parametrize(("jobs", "machines"), [(10, 3), (9, 3), (1, 4), (7, 1)])
def test_equal_jobs_on_m_machines_take_as_many_rounds(jobs, machines):
    tasks = [ScheduledTask(5.0, uses={"jobs": 1})] * jobs
    assert takes(tasks, jobs=machines) == 5.0 * -(-jobs // machines)
    assert most_scheduled(tasks, scheduled_start_times(tasks, {"jobs": machines}), "jobs") == min(
        jobs, machines
    )
    assert takes(tasks) == 5.0


def test_a_chain_takes_the_sum_whatever_the_bounds():
    chain = [
        ScheduledTask(float(i + 1), needs=[i - 1] if i else [], uses={"jobs": 1}) for i in range(6)
    ]
    assert takes(chain, jobs=1) == takes(chain, jobs=9) == takes(chain) == 21.0
    assert scheduled_start_times(chain, {"jobs": 9}) == [0.0, 1.0, 3.0, 6.0, 10.0, 15.0]


def test_the_scarcer_of_two_resources_decides():
    # Six trainings of 4 s, each followed by an evaluation of 3 s; two places, one for a training.
    trainings = [ScheduledTask(4.0, uses={"jobs": 1, "trainings": 1})] * 6
    evaluations = [ScheduledTask(3.0, [i], {"jobs": 1}, priority=2) for i in range(6)]
    both = [*trainings, *evaluations]
    assert takes(both, jobs=2, trainings=1) == 6 * 4 + 3
    assert takes(both, jobs=1, trainings=1) == 6 * 7
    assert takes(both, jobs=12, trainings=2) == 3 * 4 + 3
    # Three GPUs each: seven hold two trainings, and no evaluation that asks for two more.
    with_gpus = [t._replace(uses=t.uses | {"gpus": 3 - t.priority // 2}) for t in both]
    assert takes(with_gpus, jobs=12, trainings=6, gpus=3) == 6 * 7


def test_what_has_priority_starts_first_and_a_free_place_is_not_left_empty():
    tasks = [ScheduledTask(1.0, uses={"jobs": 1}, priority=p) for p in (0, 2, 1)]
    assert scheduled_start_times(tasks, {"jobs": 1}) == [2.0, 0.0, 1.0]
    large = [ScheduledTask(9.0, uses={"gpus": 1}), ScheduledTask(1.0, uses={"gpus": 2}, priority=1)]
    assert scheduled_start_times(
        [large[0], large[1], ScheduledTask(1.0, uses={"gpus": 1})], {"gpus": 2}
    ) == [1, 0, 1]


def test_no_list_schedule_is_twice_as_long_as_the_best_bound():
    """Graham 1966: at most total / m + (1 - 1/m) times the longest chain."""
    draw = random.Random(0)
    for _ in range(30):
        m, tasks, chain = draw.randint(1, 5), [], []
        for i in range(30):
            needs = draw.sample(range(i), min(i, draw.randint(0, 2)))
            tasks.append(ScheduledTask(draw.expovariate(1), needs, {"jobs": 1}, draw.randint(0, 2)))
            chain.append(tasks[i].seconds + max((chain[n] for n in needs), default=0.0))
        total = sum(task.seconds for task in tasks)
        took = takes(tasks, jobs=m)
        assert max(total / m, *chain) - 1e-9 <= took
        assert took <= total / m + (1 - 1 / m) * max(chain) + 1e-9
        assert takes(tasks) == pytest.approx(max(chain))


def test_jobs_that_cannot_start_are_refused():
    with pytest.raises(ValueError, match="4 gpus, of which 2 .*\nHint: --gpus 4"):
        scheduled_start_times([ScheduledTask(1.0, uses={"gpus": 4})], {"gpus": 2})
    with pytest.raises(ValueError, match="waits for itself"):
        scheduled_start_times([ScheduledTask(1.0, [1]), ScheduledTask(1.0, [0])], {})


def test_a_study_that_was_run_took_as_long_as_its_schedule():
    """Study miniature_transfer_0_one_rate: 104 jobs by Snakemake on two cores, 23 minutes."""
    file = Path(__file__).with_name("measured_schedule.json")
    rows = json.loads(file.read_text())["rule, start and end in seconds, priority, needs"]
    tasks = [
        ScheduledTask(end - at, needs, {"cores": 1}, first) for _, at, end, first, needs in rows
    ]
    starts = scheduled_start_times(tasks, {"cores": 2})
    measured = max(row[2] for row in rows)
    assert schedule_duration(tasks, starts) == pytest.approx(measured, rel=0.01)
    assert measured > 0.99 * sum(task.seconds for task in tasks) / 2  # both cores had work
    when = defaultdict(lambda: ([], []))
    for (rule, at, *_), start in zip(rows, starts, strict=True):
        when[rule][0].append(at)
        when[rule][1].append(start)
    orders = [sorted(when, key=lambda r: fmean(when[r][i])) for i in (0, 1)]
    main = ["pool", "train", "evaluate", "evaluate_pi_0", "analyse", "table_main"]
    for order in orders:
        assert [rule for rule in order if rule in main] == main
