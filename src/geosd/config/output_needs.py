"""What a table or figure needs of a study so that it has something to show.

Its declaration says so (`geosd.reporting.specs`). The configuration is refused where a study ends
in an output whose needs it does not meet: nothing else would notice before all trainings are done.
"""

from collections.abc import Callable, Iterator

from geosd.config.study import Study, sweep_points
from geosd.models.architectures import TINY_MODELS, published_architectures
from geosd.reporting.specs import OutputSpec


def unmet_needs(study: Study, spec: OutputSpec) -> Iterator[str]:
    """Each need of an output that a study does not meet: what is missing, and how to give it."""
    methods = study.overlay.methods
    if missing := [name for name in spec.compares if name not in methods]:
        yield f"compares with {', '.join(missing)}; list it under `methods`"
    if spec.one_of and not {*spec.one_of} & {*methods}:
        yield f"shows {', '.join(spec.one_of)}; list one of them under `methods`"
    if spec.trained and not {*spec.trained} & {*study.trained}:
        yield f"shows trainings of {', '.join(spec.trained)}; list one of them under `methods`"
    if spec.besides and {*methods} <= {*spec.besides}:
        yield f"shows another method than {', '.join(spec.besides)}; list one under `methods`"
    for need in spec.needs:
        if need not in NEEDS:
            raise ValueError(
                f"{spec.title!r} needs {need!r}, which is no need.\nHint: allowed are"
                f" {', '.join(NEEDS)}."
            )
        if missing_part := NEEDS[need](study, spec):
            yield missing_part


def _grid_methods(study: Study, _: OutputSpec) -> str:
    """Each variant of the grid is trained as it is, too."""
    variants = dict.fromkeys(variant for variant, _ in study.candidates.values())
    missing = [name for name in variants if name not in study.overlay.methods]
    return f"compares with {', '.join(missing)}; list it under `methods`" if missing else ""


def _sweep(study: Study, spec: OutputSpec) -> str:
    """On each model a variant has two values of the first swept key, at the most of the others."""
    key, *others = spec.swept
    for model, points in sweep_points(study, *spec.swept).items():
        most: dict[str, tuple[float, ...]] = {}
        for point in points:
            at = tuple(point[other] for other in others)
            most[point["variant"]] = max(at, most.get(point["variant"], at))
        whole = [p["variant"] for p in points if tuple(map(p.get, others)) == most[p["variant"]]]
        if len(whole) == len({*whole}):
            where = f" at the most {', '.join(others)}" if others else ""
            return (
                f"shows a sweep, and on {model} no method has two values of {key}{where}; give the"
                f" study a grid, e.g. grid: {{geosd: {{{key}: [...]}}}}"
            )
    return ""


def _live(study: Study, spec: OutputSpec) -> str:
    """On each model a method that is swept has a live teacher at each value of the other keys."""
    others = [key for key in spec.swept if key != "teacher"]
    points = sweep_points(study, *spec.swept)
    live, runs = set(), {}
    for model, of_model in points.items():
        for point in of_model:
            run = (point["variant"], *(point[key] for key in others))
            runs[run] = " ".join(map(str, run))
            if point["teacher"] == "live":
                live.add((model, *run))
    missing = [f" for {runs[r]} on {m}" for r in runs for m in points if (m, *r) not in live]
    if runs and not missing:
        return ""
    return (
        f"compares with a live teacher, and there is none{''.join(missing[:1])}; give the study a"
        " grid over both, e.g. grid: {fwdkl: {learning_rate: [...], teacher: [live, fixed]}}"
    )


def _unless(holds: Callable[[Study], object], missing: str) -> Callable[[Study, OutputSpec], str]:
    return lambda study, _: "" if holds(study) else missing


KNOWN_SIZES = TINY_MODELS.keys() | published_architectures().keys()

NEEDS: dict[str, Callable[[Study, OutputSpec], str]] = {
    "benchmarks": _unless(
        lambda study: study.section("data")["purpose"] == "study",
        "shows scores on the benchmarks; data.purpose must be study",
    ),
    "validation": _unless(
        lambda study: study.section("data")["purpose"] != "study",
        "shows scores on validation problems; only a selection has them",
    ),
    "sizes": _unless(
        lambda study: len(study.models) > 1 and {*study.models} <= KNOWN_SIZES,
        "compares models by their sizes; list two or more under `models`, of"
        f" {', '.join(sorted(KNOWN_SIZES))}",
    ),
    "search": _unless(
        lambda study: study.section("data")["source"].startswith("search"),
        "shows habits of the search world; data.source must be search or search-wide",
    ),
    "grid": _unless(
        lambda study: study.candidates, "shows the candidates of a grid; give the study a `grid`"
    ),
    "grid_methods": _grid_methods,
    "sweep": _sweep,
    "live": _live,
}
"""What an output may need, by the word of its declaration -> what is missing, or nothing."""
