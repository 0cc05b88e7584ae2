"""The columns of every tidy file: one row a number, columns known by name and type.

`model`, `variant` and `seed` name a run; `draw` is the draw of the base model that it started from,
which follows from the seed. The file of each name has further columns:

scores, a number of a run on a benchmark
    benchmark  "id", an OOD benchmark, or "ood_avg": the run's mean over its OOD benchmarks; "pool":
               the rollouts of its solution pool, where the study trains
    split      "ID", "OOD" or "train"
    metric     "avg@k", "pass@k", "maj@k", "false_consensus", "tokens"; shares of responses that
               were not compared with the right answer: "truncated", "no_answer", "unreadable",
               "timeout", "crash"; of a pool: "with_solution", the training problems that have a
               verified solution
    k          samples or rollouts of a problem that the metric is over
    value      percent (0..100); tokens: mean response length in tokens
drift, a quantity of a run at the end of training, measured once, on rollouts of the trained student
    quantity   column of the step log: "drift/pi_0" and "drift/anchor" are mean Fisher-Rao distances
               d_FR (not squared, in radians, at most pi) over response positions, "overlap" is
               the mean sum_i sqrt(p_i q_i) of student p and teacher q,
               "support/teacher_mass_mean" and "support/teacher_mass_min" mean and minimum of
               the teacher's mass on the union of top-K supports
    value      over the response positions of `training.final_rollouts` rollouts
drift_over_steps, a step of a run; steps that did not measure the drift have no row
    value      the step log's "drift/pi_0" after so many updates, over the positions visited then;
               the last row of a run is the measurement at its end
training_curves, a step of a run: each step that measured the drift, and the end of training
    quantity   column of the step log: "rollout/accuracy", "drift/pi_0", "overlap"
    value      its mean over this step and those up to the next row; the last row of a run is the
               measurement at its end
consensus, a point of a run: what the samples of OOD problems agree on (Figure consensus)
    quantity   with n samples of a problem, the first m of which are asked for their agreement:
               "pass@k"             x = k for k = 1..n; percent, mean over the OOD benchmarks
               "false_consensus"    x = tau; percent of problems with C(x) >= tau and a wrong
                                    majority answer, mean over the OOD benchmarks
               "majority_accuracy"  x = C, one row for each strength that occurs (a multiple of
                                    1/m); percent of the OOD problems of this strength, of all
                                    benchmarks together, whose majority answer is right
    problems   how many problems the value is over
alignment, a mean of a checkpoint: the student's mass on the teacher's ranks
    step       updates done; 0 is pi_0, the last is the end of training
    ranking    who ranked the tokens, with the solution: "pi_0" (the same tokens for every
               checkpoint) or "live" (the checkpoint itself, the teacher of training)
    rank       1 is the teacher's first choice
    mass       mean of the student's probability of that token over the selected positions
    positions  how many these are
states, a response position of a rollout of pi_0, with p = student and q = teacher there
    rollout, position      number of the rollout, and of the token in its response, from 0
    token                  the response token
    entropy                of pi_0's next-token distribution, in nats
    selected               whether the entropy is among the rollout's highest tenth
    overlap                sum_i sqrt(p_i q_i)
    top_token              j* = argmax q
    q_star, p_star         teacher's and student's mass on j*
    gradient_<divergence>  norm of its gradient with respect to the student's logits
claims, a claim of the paper on a model (`geosd.claims.finding.Finding`)

Benchmarks weigh equally in OOD averages, as in the paper; "majority_accuracy" is conditioned on C,
so there each problem counts once. The workflow reads this module at each start: it imports no other
package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

RUN_COLUMNS: Mapping[str, type] = {"model": str, "variant": str, "seed": int, "draw": int}
"""The columns that every row of a run begins with."""
DIVERGENCES = ("fwdkl", "revkl", "hellinger")
"""Divergences with a column `gradient_<divergence>` in the table of states."""


def _columns(*groups: tuple[type, str]) -> dict[str, type]:
    return {name: kind for kind, names in groups for name in names.split()}


COLUMNS: Mapping[str, Mapping[str, type]] = {
    "scores": RUN_COLUMNS | _columns((str, "benchmark split metric"), (int, "k"), (float, "value")),
    "drift": RUN_COLUMNS | _columns((str, "quantity"), (float, "value")),
    "drift_over_steps": RUN_COLUMNS | _columns((int, "step"), (float, "value")),
    "training_curves": RUN_COLUMNS | _columns((int, "step"), (str, "quantity"), (float, "value")),
    "consensus": RUN_COLUMNS
    | _columns((str, "quantity"), (float, "x"), (int, "problems"), (float, "value")),
    "alignment": RUN_COLUMNS
    | _columns((int, "step"), (str, "ranking"), (int, "rank"), (float, "mass"), (int, "positions")),
    "states": _columns(
        (str, "model problem_id"),
        (int, "rollout position token"),
        (float, "entropy"),
        (bool, "selected"),
        (float, "overlap"),
        (int, "top_token"),
        (float, "q_star p_star"),
        (float, " ".join(f"gradient_{name}" for name in DIVERGENCES)),
    ),
    # Numbers are read as text, since float() is exact where pandas may round the last digit.
    "claims": _columns(
        (str, "claim study model verdict comparison metric note"),
        (str, "effect low high p_for p_against detectable draw_sd paper_effect"),
        (int, "rows n_a n_b units"),
    ),
}
"""File name without `.csv` -> column -> type, in the order of the columns."""

NUMBERS: Mapping[str, tuple[str, ...]] = {
    "scores": ("value",),
    "drift": ("value",),
    "drift_over_steps": ("value",),
    "training_curves": ("value",),
    "consensus": ("problems", "value"),
    "alignment": ("mass", "positions"),
}
"""Columns that a row is about; its other columns name it, and no two rows have the same name."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "split": ("ID", "OOD", "train"),
    "ranking": ("pi_0", "live"),
}
"""Columns in which only these words stand."""
UNITS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("avg@k", "pass@k", "maj@k", "with_solution"), (0, 100)),
    **dict.fromkeys(("truncated", "no_answer", "unreadable", "timeout", "crash"), (0, 100)),
    **dict.fromkeys(("false_consensus", "majority_accuracy"), (0, 100)),
    "tokens": (0, math.inf),
    **dict.fromkeys(("drift/pi_0", "drift/anchor"), (0, math.pi)),
    **dict.fromkeys(("overlap", "rollout/accuracy", "mass", "q_star", "p_star"), (0, 1)),
    **dict.fromkeys(("support/teacher_mass_mean", "support/teacher_mass_min"), (0, 1)),
}
"""Least and most of a number, by its column, or by what `metric` or `quantity` say `value` is."""
