"""Needs of a table or figure: a study must meet them so that it has something to show.

Its declaration says so (`geosd.reporting.specs`). The configuration is refused where a study ends
in an output whose needs it does not meet: nothing else would notice before all trainings are done.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from geosd.config.rule_settings import geosd_part_settings, long_geosd_run_settings
from geosd.config.study import Study
from geosd.config.sweeps import sweep_points
from geosd.models.architectures import TINY_MODELS, published_architectures
from geosd.problems.fresh_benchmarks import fresh_benchmarks
from geosd.reporting.specs import OutputSpec, family_specs, output_spec_title, output_specs


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
        if missing_part := NEEDS[need].missing(study, spec):
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
        whole = []
        for point in points:
            at = tuple(point[other] for other in others)
            if at == most[point["variant"]]:
                whole.append(point["variant"])
        if len(whole) == len(set(whole)):
            where = f" at the most {', '.join(others)}" if others else ""
            return (
                f"shows a sweep, and on {model} no method has two values of {key}{where}; give the"
                f" study a grid, e.g. grid: {{geosd: {{{key}: [...]}}}}"
            )
    return ""


def _paths(study: Study, spec: OutputSpec) -> str:
    """On each model GeoSD and another method have two or more points of the swept keys."""
    for model, points in sweep_points(study, *spec.swept).items():
        many = Counter(point["variant"] for point in points)
        with_path = {variant for variant, number in many.items() if number > 1}
        if "geosd" not in with_path or len(with_path) < 2:
            return (
                f"compares GeoSD's path with that of others, and on {model} GeoSD or any other"
                " method has fewer than two rates or steps; give the study a grid, e.g. grid:"
                " {fwdkl: {learning_rate: [...]}, geosd: {learning_rate: [...]}}"
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
            runs[run] = " ".join(str(part) for part in run)
            if point["teacher"] == "live":
                live.add((model, run))
    missing = [(model, run) for run, model in product(runs, points) if (model, run) not in live]
    if runs and not missing:
        return ""
    first = ""
    if missing:
        model, run = missing[0]
        first = f" for {runs[run]} on {model}"
    return (
        f"compares with a live teacher, and there is none{first}; give the study a"
        " grid over both, e.g. grid: {fwdkl: {learning_rate: [...], teacher: [live, fixed]}}"
    )


def _factorial(study: Study, _: OutputSpec) -> str:
    """All candidates are GeoSD's, at one rate, and cross divergence, lambda and optimiser."""
    parts = geosd_part_settings(study)
    keys = ("divergence", "drift_penalty", "rule")
    crossed = all(len({part[key] for part in parts.values()}) > 1 for key in keys)
    rates = {study.training(study.models[0], name)["learning_rate"] for name in parts}
    if crossed and len(rates) == len(study.models) == 1 and parts.keys() == study.candidates.keys():
        return ""
    return (
        "compares GeoSD's divergences, proximal strengths and optimisers on one model at one"
        " learning rate; give the study one model and a grid, e.g. grid: {geosd:"
        " {objective.divergence: [hellinger, jsd], objective.drift_penalty: [0, 1],"
        " optimiser.rule: [kfac, adamw], steps: [...]}}"
    )


def _long(study: Study, _: OutputSpec) -> str:
    """All candidates are GeoSD's on one model, judged at a tenth, at half and at the end."""
    runs = long_geosd_run_settings(study)
    cells: dict[tuple[str, int], set[int]] = {}
    for run in runs.values():
        cells.setdefault((run["divergence"], run["anchor_every"]), set()).add(run["steps"])
    whole = max((run["steps"] for run in runs.values()), default=0)
    wanted = {whole // 10, whole // 2, whole}
    judged = all(wanted <= steps for steps in cells.values())
    if cells and judged and len(study.models) == 1 and runs.keys() == study.candidates.keys():
        return ""
    return (
        "shows long trainings of GeoSD on one model, judged after a tenth, after half and after all"
        " of their steps; give the study one model and a grid, e.g. grid: {geosd:"
        " {objective.divergence: [hellinger, jsd], anchor_every: [20, 100],"
        " steps: [200, 1000, 2000]}}"
    )


class Need(NamedTuple):
    """A need of outputs: a study's missing part, or nothing; and words for its list."""

    missing: Callable[[Study, OutputSpec], str]
    words: str


def _unless(holds: Callable[[Study], object], missing: str, words: str) -> Need:
    """A need that does not depend on the output."""
    return Need(lambda study, _: "" if holds(study) else missing, words)


def _is_judged(study: Study) -> bool:
    return study.section("data")["purpose"] == "study"


def _benchmarks(study: Study, _: OutputSpec) -> str:
    """A user's files may hold no benchmark; other sources have some."""
    if not _is_judged(study):
        return "shows scores on the benchmarks; data.purpose must be study"
    data = study.section("data")
    raw = Path(data["raw"] or "")
    files = [raw] if raw.is_file() else [*raw.glob("*.jsonl")]
    fresh = {one.name for one in fresh_benchmarks(data.get("fresh", ()))}
    files = [file for file in files if file.stem not in fresh]
    if data["source"] != "jsonl" or len(files) != 1:  # where there is none, the first job says so
        return ""
    return (
        "shows scores out of distribution, and there is no file but"
        f" {files[0]}; data.raw must be a folder with train.jsonl and a file for each benchmark, or"
        " list outputs without benchmarks, e.g. outputs: [table_main, figure_training]"
    )


def _is_of_the_dial(study: Study) -> bool:
    """Whether a study has one model and one setting, and its runs differ in method and rate."""
    changes = [changed for _, changed in study.candidates.values()]
    by_rate_alone = {*map(frozenset, changes)} == {frozenset({"learning_rate"})}
    has_setting = study.section("data")["conflict"] is not None
    return len(study.models) == 1 and has_setting and by_rate_alone


def _has_stops(study: Study) -> bool:
    """Whether a study has one model and one setting, and GeoSD and another method have stops."""
    has_setting = study.section("data")["conflict"] is not None
    if len(study.models) > 1 or not has_setting:
        return False
    (points,) = sweep_points(study, "learning_rate", "steps").values()
    lengths = Counter((point["variant"], point["learning_rate"]) for point in points)
    stopped = {variant for (variant, _), number in lengths.items() if number > 1}
    return "geosd" in stopped and len(stopped) > 1


KNOWN_SIZES = TINY_MODELS.keys() | published_architectures().keys()

NEEDS = {
    "test": _unless(
        _is_judged, "shows scores on the test problems; data.purpose must be study", "no selection"
    ),
    "benchmarks": Need(_benchmarks, "no selection, and problems out of distribution"),
    "validation": _unless(
        lambda study: not _is_judged(study),
        "shows scores on validation problems; only a selection has them",
        "a selection",
    ),
    "sizes": _unless(
        lambda study: len(study.models) > 1 and {*study.models} <= KNOWN_SIZES,
        "compares models by their sizes; list two or more under `models`, of"
        f" {', '.join(sorted(KNOWN_SIZES))}",
        "two models of known sizes",
    ),
    "search": _unless(
        lambda study: study.section("data")["source"].startswith("search"),
        "shows habits of the search world; data.source must be search or search-wide",
        "`data.source: search` or `search-wide`",
    ),
    "grid": _unless(
        lambda study: study.candidates,
        "shows the candidates of a grid; give the study a `grid`",
        "a grid",
    ),
    "dial": _unless(
        _is_of_the_dial,
        "shows rates over the dial; it needs one model, a setting of data.conflict, and a grid over"
        " the learning rate alone",
        "one model, a setting of `data.conflict`, and a grid over the learning rate alone",
    ),
    "stops": _unless(
        _has_stops,
        "shows runs on their way at a setting of the dial; it needs one model, a setting of"
        " data.conflict, and a grid with two values of steps for geosd and another method, e.g."
        " grid: {fwdkl: {steps: [...]}, geosd: {steps: [...]}}",
        "one model, a setting of `data.conflict`, and two values of steps for geosd and another"
        " method",
    ),
    "verdicts": _unless(
        lambda study: study.overlay.verdicts and "claims" in study.outputs,
        "merges ledgers with words; list claims under `outputs`, and say `verdicts: true`",
        "`claims` and `verdicts: true`",
    ),
    "grid_methods": Need(_grid_methods, "the grid's variants among the methods"),
    "sweep": Need(_sweep, "on each model two values of {first} for a method"),
    "paths": Need(_paths, "on each model two values of {swept} for geosd, and for another method"),
    "factorial": Need(_factorial, "one model, and a grid over GeoSD's parts at one rate"),
    "long": Need(_long, "one model, and a grid of GeoSD by length, with a tenth and a half"),
    "live": Need(_live, "a grid over {swept}, with a live teacher at each value"),
}
"""Needs by their words in declarations."""


def output_needs_rows() -> str:
    """Needs, sources and subject of each table and figure: rows of Markdown."""
    rows = ["| output | shows | in the paper | made of | needs |", "|:--|:--|:--|:--|:--|"]
    for name, spec in {**output_specs(), **family_specs()}.items():
        swept = {"first": next(iter(spec.swept), ""), "swept": ", ".join(spec.swept)}
        words = [NEEDS[need].words.format(**swept) for need in spec.needs]
        for start, names in (
            ("the methods", spec.compares),
            ("one of", spec.one_of),
            ("a training of", spec.trained),
            ("a method besides", spec.besides),
        ):
            words += [f"{start} {', '.join(names)}"] if names else []
        words += ["of each study of a family"] if spec.family else []
        made = ", ".join(spec.reads) or "settings"
        parts = (
            f"`{name}`",
            output_spec_title(name),
            spec.paper or "–",
            made,
            "; ".join(words) or "–",
        )
        rows.append(f"| {' | '.join(parts)} |")
    return "\n".join(rows) + "\n"
