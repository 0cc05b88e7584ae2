"""Say what a study will cost before anything is spent: jobs, GPUs, hours, days, disk.

The jobs are those of a dry run of Snakemake. Nothing is run, fetched or written, and no data need
be there. Where results have manifests, the seconds that these record stand next to the
reckoned ones.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Annotated, Any

import tyro

from geosd.cli.cut_off_experiment import name_cut_off_experiment
from geosd.cli.snakemake_runs import SnakemakeJob, snakemake_dry_run
from geosd.cli.study_inputs import check_study_inputs
from geosd.cli.training_workloads import training_workload_of_settings
from geosd.config import ConfigError, Study, load, resolve_study
from geosd.config.job_counts import job_counts
from geosd.config.kept_weights import kept_for
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.costs import gpu_memory, hours, memory_and_disk
from geosd.costs.assumptions import DEFAULTS, Assumptions
from geosd.costs.fitting import FittingEngineShare, FittingGpu, fitting_gpus
from geosd.costs.schedule import (
    ScheduledTask,
    most_scheduled,
    schedule_duration,
    scheduled_start_times,
)
from geosd.costs.workload import (
    ModelWorkload,
    SamplingWorkload,
    StoredWeightsWorkload,
    WorkloadGpus,
)
from geosd.models.architectures import architecture, published_architectures
from geosd.prerequisites import slurm
from geosd.prerequisites.checks import missing_by_checks, report_checks
from geosd.problems.benchmark_sizes import benchmark_sizes
from geosd.problems.records import ID
from geosd.reporting import plan_tables
from geosd.reporting.plan_tables import PlanCalendarRow

SITE = Path("profiles/slurm/site.yaml")
OTHER_BOUNDS = ((64, None), (64, 16))
"""Jobs and trainings at once, a line of the plan for each pair; None is the site's own limit."""


def main(
    study: str | None = None,
    model: str | None = None,
    params: Path = Path("params.yaml"),
    assumed: Annotated[Assumptions, tyro.conf.arg(name="")] = DEFAULTS,
    jobs: int | None = None,
    trainings: int | None = None,
    gpus: int | None = None,
    listed: Annotated[bool, tyro.conf.arg(name="all")] = False,
    planned: Path | None = None,
) -> None:
    """Print what a study, or one of its models, costs: jobs, GPUs, hours, days, disk.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        model: Name of one of the paper's models: its memory.
        jobs: Jobs at once; default: that of profiles/slurm/site.yaml.
        trainings: Trainings among them; default: that of the same file.
        gpus: GPUs in use at once; default: as many as the jobs ask for.
        listed: List every job, and why it would run.
        planned: The jobs of a dry run; default: Snakemake is asked for them.
    """
    name_cut_off_experiment()
    try:
        resolved = resolve_study(load(params), study)
        if model is not None:
            parts = _of_model(resolved, model, assumed)
        else:
            site = slurm.read_slurm_site(SITE)
            bounds = {"jobs": jobs or site.jobs, "trainings": trainings or site.trainings}
            bounds |= {"gpus": gpus} if gpus else {}
            rows = (
                json.loads(planned.read_text())
                if planned
                else snakemake_dry_run(resolved.name, listed)
            )
            of_snakemake = [SnakemakeJob(*row) for row in rows]
            parts = _of_study(resolved, of_snakemake, site, bounds, assumed)
    except ValueError as error:  # a name, a share, or a model that fits nowhere
        sys.exit(str(error))
    checks = [] if model is not None else check_study_inputs(resolved, resolved.models)
    faults = [check for check in checks if check.state in ("missing", "note")]
    if faults:
        parts = [*parts, report_checks(faults)]
    print("\n\n".join(part for part in parts if part), flush=True)
    subjects = missing_by_checks(faults)
    if subjects:
        sys.exit(
            f"\nStudy {resolved.name} cannot run as it is: {'; '.join(subjects)}.\nHint: the lines"
            " above say what to do; `geosd doctor` looks at the rest of this machine too."
        )


def _of_study(
    study: Study,
    jobs: Sequence[SnakemakeJob],
    site: slurm.SlurmSite,
    bounds: Mapping[str, int],
    assumed: Assumptions,
) -> list[str]:
    """The jobs of each rule, and how long all take; what a cluster is asked for, with GPUs."""
    measured = hours.measured_hours(RunFolders(study).jobs())
    left = Counter((job.model, job.rule) for job in jobs)
    works = {model: plan_model_workload(study, model, assumed) for model in study.models}
    rows = [
        row
        for model, work in works.items()
        for row in hours.hours_rows(
            work, {rule: left[model, rule] for rule in work.jobs}, measured.get(model, {}), assumed
        )
    ]
    hours_of = {
        (row.model, row.rule): likely
        for row, likely in zip(rows, hours.likely_hours(rows), strict=True)
        if likely
    }
    parts = [fill(f"# Study {study.name}: {study.params.studies[study.name].about}", 80)]
    if not jobs:
        parts.append("Nothing to do: every result of the study is there and current.")
    on_gpus = any(row.gpus for row in rows)
    limits = _time_limits(study, site.max_minutes) if on_gpus else {}
    parts.append(plan_tables.plan_rule_table(rows, Counter(job.rule for job in jobs), limits))
    parts.append(plan_tables.plan_sync_words(_weight_syncs(study, works, assumed)))
    if not on_gpus:
        return [*parts, _times_elsewhere(study, rows)]
    gpus = {(row.model, row.rule): row.gpus for row in rows}
    tasks = []
    for job in jobs:
        of = (job.model, job.rule)
        uses = {"jobs": 1, "trainings": int(job.rule == "train"), "gpus": gpus.get(of, 0)}
        time = hours.HOUR * hours_of.get(of, 0.0)
        tasks.append(ScheduledTask(time, job.needs, {} if job.local else uses, job.priority))
    others = [bounds | {"jobs": n, "trainings": m or bounds["trainings"]} for n, m in OTHER_BOUNDS]
    bounded = [bounds, *others]
    peaks = plan_disk_peaks(study, [(one["jobs"], one["trainings"]) for one in bounded], assumed)
    calendar = []
    for given, peak in zip([*bounded, {}], [*peaks, []], strict=True):
        starts = scheduled_start_times(tasks, given)
        row = PlanCalendarRow(
            given, schedule_duration(tasks, starts), most_scheduled(tasks, starts, "gpus"), peak
        )
        calendar.append(row)
    return [
        *parts,
        _of_design(study, works, assumed),
        plan_tables.plan_fitting_table(plan_gpu_needs(study, works, assumed), assumed),
        plan_tables.plan_calendar_table(calendar),
        _partitions(study, site),
        plan_tables.plan_peak_table(calendar[0].peak),
        plan_tables.plan_assumption_table(assumed),
    ]


def _of_design(study: Study, works: Mapping[str, ModelWorkload], assumed: Assumptions) -> str:
    """Hours and power of a study in stages beside the one that it extends; empty for any other."""
    stages, extended = study.overlay.stages, study.overlay.extends
    if stages is None or extended is None or len(study.seeds) != stages.seeds[-1]:
        return ""
    from geosd.cli.staged_plan import staged_plan_table  # its scipy takes half a second

    whole = resolve_study(study.params, extended)
    others = {model: plan_model_workload(whole, model, assumed) for model in whole.models}
    return staged_plan_table(study, works, whole, others, assumed)


def plan_gpu_needs(
    study: Study, works: Mapping[str, ModelWorkload], assumed: Assumptions
) -> dict[str, list[FittingGpu]]:
    """What the GPUs of each published model's jobs must have."""
    needs = {}
    for model, work in works.items():
        if model in published_architectures():
            rollout = study.section("rollout", model)
            share = FittingEngineShare(rollout["memory"], rollout["tensor_parallel"])
            needs[model] = fitting_gpus(work, share, assumed)
    return needs


def _times_elsewhere(study: Study, rows: Sequence[hours.HoursRow]) -> str:
    """Times of jobs without a GPU in other studies, in words; nothing where all are measured."""
    wanted = [(row.model, row.rule) for row in rows if row.jobs and row.measured is None]
    if not wanted:
        return ""
    took = {of: hours.hours_in_results(RESULTS, *of) for of in wanted}
    known = [
        f"{rule} of {model} {plan_tables.plan_time_words(hours.HOUR * fmean(found))} ({len(found)})"
        for (model, rule), found in took.items()
        if found
    ]
    if known:
        return fill(
            f"On CPUs nothing is reckoned. Jobs of other settings took here, in the mean of"
            f" so many: {', '.join(known)}.",
            80,
        )
    return fill(
        "On CPUs nothing is reckoned, and no job of these models has ended here: `make run`"
        " says how long is left once the first ones have.",
        80,
    )


def _time_limits(study: Study, longest: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The minutes of a job, and how often it may be submitted to go on: (model, rule) -> both."""
    limits = {}
    for of in product(study.models, job_counts(study)):
        job = study.resources_of(of[0]).job(of[1])
        limits[of] = min(job.minutes, longest), job.pieces(longest)
    return limits


def plan_slurm_requests(
    study: Study, models: Sequence[str], max_minutes: int
) -> dict[slurm.SlurmRequest, list[str]]:
    """Requests of the planned jobs to SLURM, each once -> the models and rules that make them.

    A job asks for `max_minutes` at most, and goes on when it is submitted again.
    """
    requests: dict[slurm.SlurmRequest, list[str]] = {}
    for model, rule in product(models, job_counts(study)):
        job = study.resources_of(model).job(rule)
        nodes = getattr(job, "nodes", 1)  # trainings alone are spread over several
        minutes = min(job.minutes, max_minutes)
        request = slurm.SlurmRequest(job.gpus // nodes, job.mem_mb, minutes, job.threads, nodes)
        requests.setdefault(request, []).append(f"{model}/{rule}")
    return requests


def _partitions(study: Study, site: slurm.SlurmSite) -> str:
    """Whether each job fits a partition of the site, in words."""
    requests = plan_slurm_requests(study, study.models, site.max_minutes)
    checks = slurm.check_slurm_fits(requests, site, SITE)
    faults = [check for check in checks if check.state != "ok"]
    if faults:
        return report_checks(faults)
    minutes = max(request.minutes for request in requests)
    mem_mb = max(request.mem_mb for request in requests)
    gpus = max(request.gpus for request in requests)
    needs = f"{minutes / 60:g} h, {mem_mb / 1000:g} GB and {gpus} GPUs of a node"
    if not site.partitions:
        return f"No job asks for more than {needs}.\n{SITE} names no partition to hold that to."
    return f"No job asks for more than {needs}.\nEach fits one of {', '.join(site.partitions)}."


def _of_model(study: Study, model: str, assumed: Assumptions) -> list[str]:
    """Memory of one GPU, part by part."""
    known = [name for name in study.params.models if name in published_architectures()]
    if model not in known:
        raise ConfigError(
            f"{model!r} is none of the paper's models in params.yaml. Allowed: {', '.join(known)}."
            "\nHint: without --model the plan lists every model of the study."
        )
    work = plan_model_workload(study, model, assumed)
    shape = architecture(model)
    request = work.gpu_requests["train"]
    memories = []
    for training in work.trainings.values():
        of_trainer = gpu_memory.training_gpu_memory(shape, training, request, assumed)
        of_sampler = gpu_memory.inference_gpu_memory(shape, training, request, assumed)
        memories.append([of_trainer, of_sampler])
    largest = max(memories, key=lambda both: sum(map(gpu_memory.total_gpu_memory, both)))
    parts = [f"# {shape.label} in study {study.name}: N = {shape.parameters / 1e9:.3f} billion"]
    gpus = {"training": request.trainers, "inference": request.inference}
    for (role, n), parts_of_gpu in zip(gpus.items(), largest, strict=True):
        if n:
            title = f"One of {n} {role} GPUs"
            parts.append(plan_tables.plan_gpu_memory_table(title, parts_of_gpu, assumed))
    parts.append(plan_tables.plan_sync_words(_weight_syncs(study, {model: work}, assumed)))
    return [*parts, plan_tables.plan_assumption_table(assumed)]


def _weight_syncs(
    study: Study, works: Mapping[str, ModelWorkload], assumed: Assumptions
) -> dict[str, hours.WeightSyncHours]:
    """What a sync takes of each published model that a training samples with vLLM."""
    return {
        model: hours.weight_sync_hours(architecture(model), work.gpu_requests["train"], assumed)
        for model, work in works.items()
        if model in published_architectures()
        and study.section("rollout", model)["engine"] == "vllm"
        and any(training.generates for training in work.trainings.values())
    }


def plan_disk_peaks(
    study: Study, bounds: Sequence[tuple[int, int]], assumed: Assumptions
) -> list[list[memory_and_disk.MemoryAndDiskPart]]:
    """The most that the study's published models have on disk, for each (jobs, trainings) at once.

    Empty lists where the study has no such model.
    """
    # A study's early stops are links to snapshots that it has counted.
    waiting = [file for file in kept_for(study) if "/stopped_" not in file]
    works = []
    for model in study.models:
        if model in published_architectures():
            of_model = [file for file in waiting if f"/{model}/" in file]
            works.append(plan_model_workload(study, model, assumed, len(of_model)))
    if not works:
        return [[] for _ in bounds]
    keep = study.overlay.keep
    return [memory_and_disk.peak_disk(works, keep, *bound, assumed) for bound in bounds]


def plan_model_workload(
    study: Study, model: str, assumed: Assumptions, waiting: int = 0
) -> ModelWorkload:
    """What the jobs of a model do; `waiting` files of weights other studies have yet to read."""
    pool = study.section("pool", model)
    storage = study.section("training", model)["storage"]
    data = study.section("data", model)
    counts = job_counts(study)
    problems = data["select_train"] if data["purpose"] == "selection" else data["train"]
    trainings = {variant: study.training(model, variant) for variant in study.trained}
    # Variants of equal settings are one run; an early stop's weights and its snapshot of the longer
    # run are one file.
    by_settings = {json.dumps(one, sort_keys=True): name for name, one in trainings.items()}
    runs = list(by_settings.values())
    stopped = [study.early_stops[name] for name in runs if name in study.early_stops]
    whole = [name for name in runs if name not in study.early_stops]
    files = [1 + len(trainings[name]["snapshots"]) + stopped.count(name) for name in whole]
    resources = study.resources_of(model)
    jobs = {rule: resources.job(rule) for rule in (*counts, "train")}
    return ModelWorkload(
        model=model,
        jobs=counts,
        gpu_requests={
            rule: WorkloadGpus(job.gpus, getattr(job, "inference_gpus", 0))
            for rule, job in jobs.items()
        },
        pool=SamplingWorkload(problems * pool["rollouts"], pool["response_tokens"], problems, 1),
        evaluation=_evaluation(data, study.section("evaluation", model)),
        trainings={
            variant: training_workload_of_settings(settings, assumed)
            for variant, settings in trainings.items()
            if variant not in study.early_stops
        },
        stored=StoredWeightsWorkload(
            {"float32": 4, "bfloat16": 2}[storage],
            len(study.seeds) * sum(files),
            max(files),
            waiting,
        ),
    )


def _evaluation(data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> SamplingWorkload:
    """Samples of an evaluation: all benchmarks are one call."""
    cap, samples = evaluation["response_tokens"], evaluation["samples"]
    if data["purpose"] != "study":
        problems = data["select_validation"]
        return SamplingWorkload(problems * samples, cap, problems, 1)
    sizes = benchmark_sizes(data) or {}
    problems = {ID: data["test_id"], **sizes}
    drawn = dict.fromkeys(sizes, evaluation["coverage"]) | {ID: samples}
    drawn |= evaluation.get("allocation") or {}
    sequences = sum(number * drawn[name] for name, number in problems.items())
    return SamplingWorkload(sequences, cap, sum(problems.values()), 1)
