"""Make a base model pi_0: that of a study, or a draw that the repository ships.

SIGTERM ends a pretraining after the step under way; its state is saved, and the exit code 75 says
that the same command goes on from there.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from geosd.cli.job import StepJob
from geosd.config import load
from geosd.config.errors import raise_error_if_unknown
from geosd.config.schema_base import given_schema_values
from geosd.files import sha256, write_text
from geosd.models.gguf_checkpoints import (
    FETCH_AGAIN,
    INSTALL_AGAIN,
    download_gguf,
    find_gguf_in_folder,
    find_gguf_in_package,
    load_gguf,
)
from geosd.models.load_and_save import save_model
from geosd.models.precision import cast_parameters
from geosd.models.released_models import (
    DamagedReleaseError,
    copy_released_model,
    download_checkpoint,
)
from geosd.models.shipped_base_models import check_shipped_base_model, is_shipped_base_model
from geosd.preemption import catch_sigterm
from geosd.provenance.checkpoint_files import hashes_of_checkpoint
from geosd.provenance.manifest import manifest_computed_by
from geosd.training.pretrain import pretrain_base_model
from geosd.training.resume_state import ResumeState

WINDOW = 100  # steps over which a recipe's losses are averaged


def main(
    study: str,
    model: str,
    out: Path,
    scratch: Path,
    draw: int = 0,
    params: Path = Path("params.yaml"),
) -> None:
    """Make a base model pi_0: pretrain it, or take a released checkpoint.

    Args:
        scratch: Folder of the state that a killed pretraining continues from.
        draw: The draw of a base model that the repository ships.
    """
    job = StepJob("base", params, study, model, draw=draw, out=out)
    settings = job.settings
    if settings["source"] == "released":
        checkpoint = settings["checkpoint"]
        if checkpoint.get("file"):
            # Of a file that has its hash the folder says where it is, not what it is.
            folder = job.study.section("base", model)["checkpoint"].get("folder")
            _released_gguf(checkpoint, folder, out)
            inputs = {}
        else:
            inputs = _released(checkpoint, out)
        job.write_manifest(out, inputs, model=model, draw=draw)
        return
    resume = ResumeState(scratch, job.identity({}, model=model))
    inputs = _pretrain(model, settings["pretraining"], resume, out)
    job.write_manifest(out, inputs, model=model, draw=draw)
    resume.clear()


def _released(checkpoint: Mapping[str, Any], out: Path) -> dict[Path, str]:
    """Take a released checkpoint, and return the files of a folder that were read."""
    if checkpoint.get("folder"):
        folder = Path(checkpoint["folder"])
        hashes = checkpoint["files"]
        if is_shipped_base_model(folder):
            check_shipped_base_model(folder, hashes)
        copy_released_model(folder, out)
        changed = [name for name in hashes if sha256(folder / name) != hashes[name]]
        if changed:
            raise DamagedReleaseError(
                f"{folder / changed[0]} was changed while it was copied, or since its hash was"
                " taken for the address of the base model.\nHint: start the same command again"
                " when nothing writes to the folder any more."
            )
        return {folder / name: digest for name, digest in hashes.items()}
    snapshot = download_checkpoint(checkpoint["repo"], checkpoint["revision"])
    copy_released_model(snapshot, out, links_into=snapshot.parents[2])  # the hub's cache
    return {}


def _released_gguf(checkpoint: Mapping[str, Any], folder: str | None, out: Path) -> None:
    """Take a released checkpoint of one GGUF file: of a folder, of the hub, or of a package."""
    file, hint = checkpoint["file"], FETCH_AGAIN
    if folder:
        path = find_gguf_in_folder(Path(folder), file)
    elif checkpoint.get("repo"):
        path = download_gguf(checkpoint["repo"], checkpoint["revision"], file)
    else:
        path, hint = find_gguf_in_package(checkpoint["package"], file), INSTALL_AGAIN
    network, tokenizer = load_gguf(path, checkpoint["sha256"], hint)
    save_model(network, tokenizer, out)


def _pretrain(
    model: str, recipe: Mapping[str, Any], resume: ResumeState, out: Path
) -> dict[Path, str]:
    """Pretrain a base model, and return the files of the one that it starts from."""
    with catch_sigterm() as stop_requested:
        network, tokenizer, losses = pretrain_base_model(
            recipe, resume, f"base {model}", stop_requested
        )
    rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
    write_text(out / "loss.csv", "step,loss_nats\n" + rows)
    save_model(network, tokenizer, out)
    start = recipe.get("start")
    if start is None:
        return {}
    folder = Path(start) / str(recipe["seed"])
    return {folder / name: digest for name, digest in hashes_of_checkpoint(folder).items()}


def base_model_program(
    model: str,
    draw: int,
    out: Path = Path("base_models"),
    scratch: Path = Path("scratch/base_models"),
    params: Path = Path("params.yaml"),
) -> None:
    """Pretrain a draw of a base model that the repository ships, and write its recipe.json.

    The recipe is the model's `base.pretraining` in params.yaml. The number of the draw is the seed
    of its weights and documents. Weights are kept in bfloat16, as released models' are.

    Args:
        out: Folder of all base models; this one is written to `<out>/<model>/<draw>`.
        scratch: Folder of the state that a killed pretraining continues from.
    """
    models = load(params).models
    raise_error_if_unknown("model", model, models)
    recipe = given_schema_values(models[model].base).get("pretraining")
    if recipe is None:
        raise ValueError(
            f"{model} has no recipe of a pretraining.\nHint: models that the repository ships have"
            " `base.pretraining` in params.yaml."
        )
    recipe |= {"seed": draw}
    identity = {**manifest_computed_by("base"), "model": model, "recipe": recipe}
    resume = ResumeState(scratch / model / str(draw), identity)
    with catch_sigterm() as stop_requested:
        network, tokenizer, losses = pretrain_base_model(
            recipe, resume, f"{model}, draw {draw}", stop_requested
        )
    folder = out / model / str(draw)
    save_model(cast_parameters(network, torch.bfloat16), tokenizer, folder)
    means = [fmean(losses[at : at + WINDOW]) for at in range(0, len(losses), WINDOW)]
    made = {"pretraining": recipe, f"loss of each {WINDOW} steps": [round(x, 4) for x in means]}
    write_text(folder / "recipe.json", json.dumps(made, indent=1) + "\n")
    resume.clear()
