"""Local files and tokenizers of a study, read before its first job as the jobs will.

`geosd plan` names what is at fault, `geosd doctor` all that was found, and the driver refuses to
start a job before it. Nothing is written, fetched or sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from geosd.config import Study, settings
from geosd.config.model_sizes import context_beyond_model_size, model_size
from geosd.config.run_folders import RunFolders
from geosd.models.architectures import published_architectures
from geosd.models.context_length import ContextError, check_context
from geosd.prerequisites.checks import PrerequisiteCheck
from geosd.problems import study_problems
from geosd.problems.dataset_download import load_dataset_catalogue
from geosd.problems.encoding import encoding_of
from geosd.problems.fresh_benchmarks import fresh_benchmarks
from geosd.problems.fresh_files import check_fresh
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.records import Problem
from geosd.problems.sources import get_data_source
from geosd.sampling.solution_pool import graded_solutions, pool_solutions, require_pool_solutions

LONGEST = 20
"""Problems that are put into tokens, those of the most characters."""
CHECKED = (ValueError, OSError, RuntimeError)
"""Errors of jobs with wrong files, tokenizers and packages that are not there."""


def study_inputs_need_check(study: Study) -> bool:
    """Whether the study has files or a tokenizer of somebody else, which may not fit it."""
    source = study.section("data")["source"]
    own = get_data_source(source)
    return own.by_template or (own.reads_raw and not load_dataset_catalogue(source))


def check_study_inputs(study: Study, models: Sequence[str]) -> list[PrerequisiteCheck]:
    """The checks of a study's problems, solutions, prompts and contexts."""
    splits, checks = _problems(study)
    if splits is not None:
        checks += _solutions(study, splits)
    for model in models:
        checks += _prompts(study, model, splits)
        checks.append(_context(study, model))
    return checks


def _problems(study: Study) -> tuple[ProblemSplits | None, list[PrerequisiteCheck]]:
    """The splits as the job draws them, where no job has yet; and what there is to say of them."""
    data = study.section("data")
    if _is_drawn(study):
        return None, []
    if load_dataset_catalogue(data["source"]):
        return None, _catalogued(study)
    try:
        given = settings("data", study)
        splits = study_problems.prepare(given)
        remarks = study_problems.remarks(given)
    except CHECKED as error:
        return None, [_refused("problems", error)]
    counts = {"to train on": splits.train, "to select with": splits.select, "to test": splits.test}
    words = ", ".join(f"{len(problems)} {purpose}" for purpose, problems in counts.items())
    found = [PrerequisiteCheck("problems", "ok", words)]
    return splits, [*found, *(PrerequisiteCheck("problems", "note", remark) for remark in remarks)]


def _catalogued(study: Study) -> list[PrerequisiteCheck]:
    """What there is to say of a published data set's files, which a job reads later."""
    data = settings("data", study)
    checks = [
        PrerequisiteCheck("problems", "note", remark) for remark in study_problems.remarks(data)
    ]
    fresh = fresh_benchmarks(data.get("fresh", ()))
    try:
        check_fresh(Path(data["raw"]), fresh, data["source"])
    except CHECKED as error:
        return [*checks, _refused("fresh benchmarks", error)]
    return checks


def _is_drawn(study: Study) -> bool:
    """Whether the problems were drawn, from files that are no younger."""
    drawn = Path(RunFolders(study).train_problems)
    if not drawn.is_file():
        return False
    raw = Path(study.section("data")["raw"] or "")
    files = [raw] if raw.is_file() else [*raw.glob("*.jsonl")]
    return all(file.stat().st_mtime <= drawn.stat().st_mtime for file in files)


def _training(study: Study, splits: ProblemSplits) -> list[Problem]:
    """The problems that the study's runs train on."""
    if study.section("data")["purpose"] != "selection":
        return list(splits.train)
    return [problem for problem in splits.select if problem.benchmark == "select_train"]


def _solutions(study: Study, splits: ProblemSplits) -> list[PrerequisiteCheck]:
    """Whether enough training problems have a given solution, where a pool is made of solutions."""
    pools = {model: study.section("pool", model) for model in study.models}
    given = {model: pool for model, pool in pools.items() if pool["solutions"] != "rollouts"}
    if not given:
        return []
    problems = _training(study, splits)
    worked = splits.card.get("worked_solutions", {})
    try:
        with closing(get_data_source(study.section("data")["source"]).grader()) as grade:
            graded = graded_solutions(problems, worked, grade)
        rows = pool_solutions(problems, graded, keep=1)
        for pool in given.values():
            if pool["solutions"] == "given":
                require_pool_solutions(rows, pool["least_share"])
    except CHECKED as error:
        return [_refused("solutions", error)]
    lacking = [row.problem_id for row in rows if not row.solutions]
    counted = f"{len(rows) - len(lacking)} of {len(rows)} training problems have a given one"
    found = [PrerequisiteCheck("solutions", "ok", counted)]
    if lacking:
        use = "no training sees them" if _all_given(given) else "rollouts may solve them"
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        words = f"{', '.join(lacking[:3])}{more} have none that is right; {use}"
        found.append(PrerequisiteCheck("solutions", "note", words))
    return found


def _all_given(pools: dict[str, dict[str, Any]]) -> bool:
    """Whether every pool is made of given solutions alone."""
    return all(pool["solutions"] == "given" for pool in pools.values())


def _prompts(study: Study, model: str, splits: ProblemSplits | None) -> list[PrerequisiteCheck]:
    """Whether the model's tokenizer can word the prompts, and its context holds the longest."""
    source = get_data_source(study.section("data")["source"])
    folder = study_input_tokenizer(study, model) if source.by_template else None
    if folder is None:
        return []
    # Here, because it loads transformers, which most calls of the plan do without.
    from geosd.models.load_and_save import load_tokenizer

    subject = f"prompts of {model}"
    try:
        tokenizer, generation = load_tokenizer(folder)
        of_rules = {rule: settings(rule, study, model) for rule in ("pool", "evaluate")}
        for variant in study.trained[:1]:
            of_rules["train"] = settings("train", study, model, variant)
        encodings = {
            rule: encoding_of(given, tokenizer, generation) for rule, given in of_rules.items()
        }
        context = model_size(model, study.section("base", model)).context
        if splits is not None and isinstance(context, int):
            _check_lengths(study, model, splits, encodings, context)
    except CHECKED as error:
        check = _refused(subject, error)
        if "no chat template" in check.found:
            check = check._replace(cure=_chat_models(study))
        return [check]
    return [PrerequisiteCheck(subject, "ok", f"by the chat template of {folder}")]


def _check_lengths(
    study: Study, model: str, splits: ProblemSplits, encodings: dict[str, Any], context: int
) -> None:
    """Refuse a prompt that leaves no room for its response, by what the jobs refuse it with."""

    def longest(problems: Sequence[Problem], size: Callable[[Problem], int]) -> Iterator[Problem]:
        yield from sorted(problems, key=size, reverse=True)[:LONGEST]

    training = _training(study, splits)
    worked = splits.card.get("worked_solutions", {})
    pool = study.section("pool", model)
    evaluation = study.section("evaluation", model)
    judged = splits.test
    if study.section("data")["purpose"] != "study":
        judged = [one for one in splits.select if one.benchmark == "select_validation"]
    read = [("evaluate", judged, evaluation["response_tokens"])]
    if pool["solutions"] != "given":
        read.append(("pool", training, pool["response_tokens"]))
    caps = [study.training(model, variant)["response_tokens"] for variant in study.trained]
    if caps:
        read.append(("train", training, max(caps)))
    for rule, problems, cap in read:
        for problem in longest(problems, lambda one: len(one.question)):
            tokens = len(encodings[rule].student(problem))
            check_context(context, tokens, cap, f"the student of problem {problem.id}")
    if caps and pool["solutions"] != "rollouts":
        given = [problem for problem in training if problem.id in worked]
        for problem in longest(given, lambda one: len(one.question) + len(worked[one.id])):
            tokens = len(encodings["train"].teacher(problem, worked[problem.id]))
            check_context(context, tokens, max(caps), f"the teacher of problem {problem.id}")


def study_input_tokenizer(study: Study, model: str) -> Path | None:
    """The folder of this machine with a model's tokenizer; None before it is fetched or made."""
    made = Path(RunFolders(study).base(model))
    if (made / "config.json").is_file():
        return made
    checkpoint = settings("base", study, model).get("checkpoint") or {}
    if checkpoint.get("file"):  # a tokenizer inside a GGUF file
        return None
    folder = checkpoint.get("folder")
    if folder:
        return Path(folder) if Path(folder, "config.json").is_file() else None
    repo = checkpoint.get("repo")
    if repo:
        # Here, because it loads transformers.
        from geosd.models.released_models import cached_checkpoint

        return cached_checkpoint(repo, checkpoint["revision"])
    return None


def _chat_models(study: Study) -> str:
    """The hint that names chat models of params.yaml, those first that any machine can run."""
    sizes = {name: one.parameters for name, one in published_architectures().items()}
    checkpoints = {}
    for name in study.params.models:
        base = study.section("base", name)
        if base["source"] == "released":
            checkpoints[name] = base["checkpoint"] or {}
    packaged = [name for name, one in checkpoints.items() if one.get("package")]
    released = [name for name, one in checkpoints.items() if one.get("repo")]
    released.sort(key=lambda name: sizes.get(name, float("inf")))
    named = [*packaged, *released]
    if not named:
        return "take a chat model: docs/extending.md, section A model"
    return (
        f"take a chat model of params.yaml: {', '.join(named[:3])}; docs/extending.md has a study"
    )


def _context(study: Study, model: str) -> PrerequisiteCheck:
    """Whether a model's context holds the longest responses, and what it leaves for a question."""
    subject = f"context of {model}"
    try:
        spare = context_beyond_model_size(study, model)
    except ContextError as error:
        return _refused(subject, error)
    if not spare:
        cure = "go on: each step compares its prompts and caps with config.json before it samples"
        return PrerequisiteCheck(
            subject, "unknown", "not known before the base model is there", cure
        )
    words = ", ".join(f"{tokens} of the {reader}" for reader, tokens in spare.items())
    return PrerequisiteCheck(
        subject, "ok", f"tokens left for a question with its template: {words}"
    )


def _refused(subject: str, error: Exception) -> PrerequisiteCheck:
    """The check of what a job would end with."""
    found, _, cure = str(error).partition("\nHint: ")
    return PrerequisiteCheck(
        subject, "missing", " ".join(found.split()), " ".join(cure.split()) or "mend it"
    )
