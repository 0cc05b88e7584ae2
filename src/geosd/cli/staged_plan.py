"""The plan of a study whose seeds come in stages: hours and power beside those of another study."""

from collections.abc import Mapping

import numpy as np

from geosd.claims.staged_power import CLAIMS, StagedPowerAccuracies, simulate_staged_power
from geosd.config import Study
from geosd.costs.assumptions import Assumptions
from geosd.costs.hours import hours_rows
from geosd.costs.workload import ModelWorkload
from geosd.reporting.plan_tables import PlanDesignRow, plan_design_table

SIMULATED, SEED = 2000, 0
"""Studies that are simulated to know the power of a design, and the seed of their draws."""

Works = Mapping[str, ModelWorkload]


def staged_plan_table(
    study: Study, works: Works, whole: Study, works_of_whole: Works, assumed: Assumptions
) -> str:
    """The table of a study in stages, and of the `whole` one for which it stands; all is reckoned.

    A model ends at the stage at which its primary rows are decided or given up. The power of both
    is at the paper's effects.

    Raises:
        ValueError: The study has no stages.
    """
    stages = study.overlay.stages
    if stages is None:
        raise ValueError(f"{study.name} has no stages.\nHint: `stages` in params.yaml.")
    once, a_seed = _hours_of_all(works, len(study.seeds), assumed)
    once_whole, a_seed_whole = _hours_of_all(works_of_whole, len(whole.seeds), assumed)
    most = once_whole + len(whole.seeds) * a_seed_whole
    of_whole, of_study = _simulated((len(whole.seeds),)), _simulated(tuple(stages.seeds))
    needed = once + of_study[0] * a_seed
    designs = [
        PlanDesignRow(whole.name, of_whole[0], most, 1.0, of_whole[1]),
        PlanDesignRow(study.name, of_study[0], needed, needed / most, of_study[1]),
    ]
    ends = [(seeds, once + seeds * a_seed) for seeds in stages.seeds]
    return plan_design_table(designs, ends, list(CLAIMS))


def _simulated(stages: tuple[int, ...]) -> tuple[float, list[float]]:
    """Seeds of a model in the mean, and the power of each primary claim."""
    found = simulate_staged_power(
        StagedPowerAccuracies.published(), stages, SIMULATED, np.random.default_rng(SEED)
    )
    return float(found.seeds.mean()), [found.power(claim) for claim in CLAIMS]


def _hours_of_all(works: Works, seeds: int, assumed: Assumptions) -> tuple[float, float]:
    """GPU-hours of a study as reckoned, whatever is done: those of its pools, and of each seed."""
    once = a_seed = 0.0
    for work in works.values():
        for row in hours_rows(work, work.jobs, {}, assumed):
            spent = row.jobs * row.gpus * (row.reckoned or 0.0)
            if row.rule in ("train", "evaluate", "evaluate_pi_0"):
                a_seed += spent / seeds
            else:
                once += spent
    return once, a_seed
