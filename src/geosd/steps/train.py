"""Train one student: one variant of one model with one seed.

Writes the final weights in Hugging Face form, the step log as `steps.csv`, the settings that made
them, and, last of all, a manifest. A run that was killed goes on from its scratch folder. The
weights after the steps that `training.snapshots` lists lie in `snapshots/`, there before the final
ones are.

A run that another study has made of the same is taken from there, unless snapshots are asked for.

Started by torchrun, its processes train one student in shards: the same result up to rounding,
from the same state files. SIGTERM ends a run after the step under way; its state is saved, and the
exit code 75 says that the same command goes on from there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.config import load as load_params
from geosd.config import resolve
from geosd.config import settings as settings_of
from geosd.files import atomic_write, write_json
from geosd.models.checkpoints import save_model
from geosd.models.model_card import read_model_card, write_model_card
from geosd.problems.sources import get_data_source
from geosd.provenance.manifest import manifest, sha256
from geosd.provenance.reuse import origin, take, twin, words_of
from geosd.steps import begin
from geosd.training.assemble import assemble_rollout_worker, assemble_run, training_arguments
from geosd.training.fsdp import full_model
from geosd.training.loop import train
from geosd.training.preemption import EXIT_CODE, PreemptionError, catch_sigterm
from geosd.training.processes import broadcast_to_all, init_processes
from geosd.training.resume_state import ResumeState
from geosd.training.rollout_workers import RemoteRollouts, serve
from geosd.training.snapshots import Snapshots
from geosd.training.step_log import StepLog

OWN = ("README.md", "settings.json")
"""Files that name the study, or the snapshots it asked for; runs that are twins differ in them."""


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
    worker: bool = False,
    others: tuple[Path, ...] = (),
) -> None:
    """Train one student.

    Args:
        study: Name of the study.
        model: Name of the model.
        variant: Name of the variant.
        seed: Seed of problems, solutions, rollouts and curvature tokens.
        base: Folder of the base model.
        problems: Training problems.
        pool: Verified solutions of the training problems.
        out: Folder of the trained student.
        scratch: Folder of the state that a killed run continues from.
        params: The configuration.
        worker: Sample and score in a worker: the last process that torchrun has started.
        others: Folders in which other studies may have the same run.
    """
    began = time.monotonic()
    settings = settings_of("train", resolve(load_params(params), study), model, variant)
    inputs = {path: sha256(path) for path in (base / "model.safetensors", problems, pool)}
    identity = {"settings": settings, "seed": seed, "inputs": list(inputs.values())}
    resume = ResumeState(scratch, identity)
    snapshots = Snapshots(out / "snapshots", settings["snapshots"])
    made_of = _made_of(identity, base, worker)
    named = {"study": study, "model": model, "variant": variant, "seed": seed}
    with init_processes(worker) as (ranks, link), catch_sigterm() as stop_requested:
        # One answer for all: a folder that is being made again could divide them.
        theirs = broadcast_to_all(lambda: None if snapshots.steps else twin(others, out, made_of))
        if theirs is not None:
            if ranks is not None and ranks.is_main:
                same = _take(theirs, out, settings, named)
                made = manifest(inputs, settings, time.monotonic() - began)
                made |= origin(made_of, out, theirs, OWN)
                write_json(out / "manifest.json", {**made, **same})
                resume.clear()
            return
        places = (settings, base, problems, pool, seed)
        if ranks is None:
            serve(assemble_rollout_worker(*places), link)
            return
        samples = assemble_rollout_worker(*places) if worker and link is None else link
        run = assemble_run(*places, ranks, samples)
        try:
            log = train(
                run,
                training_arguments(settings),
                resume,
                lambda step: StepLog(scratch / "log", step),
                snapshots,
                stop_requested,
            )
        except PreemptionError as preemption:
            print(preemption, file=sys.stderr)
            sys.exit(EXIT_CODE)
        finally:  # a failure elsewhere ends all processes: torchrun sees to it
            if isinstance(run.rollout_source, RemoteRollouts) and not isinstance(
                sys.exception(), Exception
            ):
                run.rollout_source.end()
        student = full_model(run.student)
        if ranks.is_main:
            with atomic_write(out / "steps.csv") as temporary:
                log.table().to_csv(temporary)
            write_json(out / "settings.json", settings)
            write_model_card(
                out,
                **named,
                prompt=run.encoding.text(run.encoding.student(run.problem_sampler.problems[0])),
                settings=settings,
                limits=get_data_source(settings["source"]).limits,
            )
            save_model(student, run.encoding.tokenizer, out)
            made = manifest(inputs, settings, time.monotonic() - began)
            sampled = run.rollout_source.sampler.record()
            made |= origin(made_of, out, None, OWN)
            write_json(out / "manifest.json", {**made, "ranks": ranks.size, "sampler": sampled})
            resume.clear()
        ranks.barrier()


def _made_of(identity: Mapping[str, Any], base: Path, worker: bool) -> dict[str, Any]:
    """All that a run follows from; not the snapshots, because to look at it changes nothing."""
    settings = {key: of for key, of in identity["settings"].items() if key != "snapshots"}
    return {
        **identity,
        "settings": settings,
        "words": words_of(base),
        "processes": {"count": int(os.environ.get("WORLD_SIZE", "1")), "worker": worker},
    }


def _take(
    theirs: Path, out: Path, settings: Mapping[str, Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Copy a run under another name; return what its manifest tells of it."""
    told = take(theirs, out)
    write_json(out / "settings.json", settings)
    card = (theirs / "README.md").read_text(encoding="utf-8")
    write_model_card(out, **named, **read_model_card(card), settings=settings)
    return {key: told[key] for key in ("ranks", "sampler")}


if __name__ == "__main__":
    begin(main)
