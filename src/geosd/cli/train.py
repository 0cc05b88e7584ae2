"""Train one student: one variant of one model with one seed.

Writes the final weights in Hugging Face form, the step log as `steps.csv`, the settings that made
them, a manifest and, after it, a model card, which decides no result. A run that was killed goes on
from its scratch folder. The weights after the steps of `--snapshots` lie in `snapshots/`, there
before the final ones are.

Started by `accelerate launch`, its processes train one student in shards: the same result up to
rounding, from the same state files. SIGTERM ends a run after the step under way; its state is
saved, and the exit code 75 says that the same command goes on from there.
"""

import sys
from pathlib import Path
from typing import Any

import torch

from geosd.cli.job import StepJob, files_of_job
from geosd.cli.training_workloads import training_workload_share
from geosd.files import write_json, write_text
from geosd.models.load_and_save import save_model
from geosd.models.model_card import write_model_card
from geosd.models.precision import cast_parameters, resolve_precision
from geosd.optim.kfac import KFAC
from geosd.preemption import PreemptionError, catch_sigterm
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.solution_pool import read_pool, require_pool_solutions
from geosd.scores.irregular_steps import count_irregular_steps
from geosd.training.fsdp import full_model
from geosd.training.loop import train
from geosd.training.process_groups import init_process_groups
from geosd.training.processes import training_process_device, training_process_state
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.rollout_workers import RemoteRollouts, serve_trainers
from geosd.training.run import RunInputs, assemble_run, assemble_run_worker
from geosd.training.step_log import StepLog, check_step_log_trackers


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    base: Path,
    problems: Path,
    pool: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
    snapshots: tuple[int, ...] = (),
    workers: int = 0,
) -> None:
    """Train one student: one variant of one model with one seed.

    Args:
        seed: Seed of problems, solutions, rollouts and curvature tokens.
        scratch: Folder of the state that a killed run continues from.
        snapshots: Steps after which the weights are kept too.
        workers: Processes of the rollout worker, which samples and scores: the last ones that
            accelerate has started. 0 leaves both to the processes that train.
    """
    job = StepJob("train", params, study, model, variant, seed=seed, out=out)
    trackers = job.study.params.trackers
    check_step_log_trackers(trackers)
    settings = job.settings
    precision = resolve_precision(settings["precision"], training_process_device())
    resolved = {**settings, "precision": precision}
    inputs = prove_checkpoint(base) | prove([problems, pool])
    # No result depends on this share, so no folder's name does.
    least_share = job.study.section("pool", model)["least_share"]
    require_pool_solutions(read_pool(pool, read_problems(problems)), least_share)
    resume = ResumeState(scratch, job.identity(inputs, settings=resolved, seed=seed))
    run_inputs = RunInputs(_on_this_card(resolved, model), base, problems, pool, seed)
    storage = getattr(torch, run_inputs.arguments.storage)
    saved = Snapshots(out / "snapshots", snapshots, storage)
    run_name = f"{model}/{variant}/{seed}"
    with init_process_groups(workers) as (ranks, link), catch_sigterm() as stop_requested:
        if ranks is None:  # this process is the worker
            serve_trainers(assemble_run_worker(run_inputs, link.worker), link)
            return
        run = assemble_run(run_inputs, ranks, link)
        try:
            log = train(
                run,
                run_inputs.arguments,
                resume,
                lambda step: StepLog(scratch / "log", step, trackers, run_name, settings),
                saved,
                stop_requested,
            )
        finally:  # a failure elsewhere ends all processes: accelerate sees to it
            error = sys.exception()
            failed = isinstance(error, Exception) and not isinstance(error, PreemptionError)
            if isinstance(run.rollout_source, RemoteRollouts) and not failed:
                run.rollout_source.end()
        student = full_model(run.student)
        if ranks.is_main:
            write_text(out / "steps.csv", log.table().to_csv())
            write_json(out / "settings.json", settings)
            prompt = run.encoding.text(run.encoding.student(run.problem_sampler.problems[0]))
            card = {"prompt": prompt, "limits": get_data_source(settings["source"]).limits}
            save_model(cast_parameters(student, storage), run.encoding.tokenizer, out)
            kept = sorted((out / "snapshots").glob("step_*"))
            job.write_manifest(
                out,
                inputs,
                [*files_of_job(out), *kept],
                model=model,
                seed=seed,
                draw=job.draw,
                snapshots=saved.steps,
                irregular_steps=count_irregular_steps(out / "steps.csv", settings["steps"]),
                precision=precision,
                ranks=ranks.size,
                sampler=run.rollout_source.record(),
                card=card,
                **_curvature_record(run.update_rule.preconditioner),
            )
            of_base = job.study.section("base", model)
            write_model_card(out, model=model, seed=seed, settings=settings, base=of_base, **card)
            resume.clear()
        ranks.barrier()


def _on_this_card(settings: dict[str, Any], model: str) -> dict[str, Any]:
    """The settings, with vLLM's share of the GPU where one process alone does all of a training."""
    device, alone = training_process_device(), training_process_state().num_processes == 1
    if device.type != "cuda" or not alone:
        return settings
    card = torch.cuda.get_device_properties(device).total_memory
    return training_workload_share(settings, model, card)


def _curvature_record(preconditioner: KFAC | None) -> dict[str, Any]:
    """For the manifest: how much of the blocks' weights K-FAC takes; empty without K-FAC."""
    if preconditioner is None:
        return {}
    left_out = list(preconditioner.left_out)
    return {"kfac": {"share": preconditioner.share, "left_out": left_out}}
