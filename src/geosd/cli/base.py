"""Make the base model pi_0: pretrain it on a world's documents, or take a released one.

Writes the model in Hugging Face form, `loss.csv` where it was pretrained, and, last, a manifest.
A pretraining that was killed goes on from its scratch folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.cli import begin
from geosd.cli.job import Job
from geosd.files import sha256, write_text
from geosd.models.load_and_save import save_model
from geosd.models.released_models import (
    DamagedReleaseError,
    copy_checkpoint,
    download_checkpoint,
    load_gguf_package,
)
from geosd.models.shipped_base_models import check_files, is_shipped
from geosd.provenance.manifest import computed_by
from geosd.training.pretrain import pretrain_base_model
from geosd.training.resume_state import ResumeState


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
        study: Name of the study.
        model: Name of the model.
        out: Folder of the base model.
        scratch: Folder of the state that a killed pretraining continues from.
        draw: The draw of a base model that the repository ships.
        params: The configuration.
    """
    job = Job("base", params, study, model, draw=draw)
    settings = job.settings
    if settings["source"] == "released":
        inputs = _released(settings["checkpoint"], out)
        job.write_manifest(out, inputs, model=model, draw=draw)
        return
    identity = {**computed_by("base"), "settings": settings, "model": model}
    resume = ResumeState(scratch, identity)
    _pretrain(model, settings["pretraining"], resume, out)
    job.write_manifest(out, [], model=model, draw=draw)
    resume.clear()


def _released(checkpoint: Mapping[str, Any], out: Path) -> dict[Path, str]:
    """Take a released checkpoint, and return the files of a folder that were read."""
    if checkpoint.get("folder"):
        folder, hashes = Path(checkpoint["folder"]), checkpoint["files"]
        if is_shipped(folder):
            check_files(folder, hashes)
        copy_checkpoint(folder, out)
        if changed := [name for name in hashes if sha256(folder / name) != hashes[name]]:
            raise DamagedReleaseError(
                f"{folder / changed[0]} was changed while it was copied, or since its hash was"
                " taken for the address of the base model.\nHint: start the same command again"
                " when nothing writes to the folder any more."
            )
        return {folder / name: digest for name, digest in hashes.items()}
    if checkpoint.get("repo"):
        snapshot = download_checkpoint(checkpoint["repo"], checkpoint["revision"])
        copy_checkpoint(snapshot, out, links_into=snapshot.parents[2])  # the hub's cache
    else:
        save_model(
            *load_gguf_package(*(checkpoint[key] for key in ("package", "file", "sha256"))), out
        )
    return {}


def _pretrain(model: str, recipe: Mapping[str, Any], resume: ResumeState, out: Path) -> None:
    network, tokenizer, losses = pretrain_base_model(recipe, resume, f"base {model}")
    rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
    write_text(out / "loss.csv", "step,loss_nats\n" + rows)
    save_model(network, tokenizer, out)


if __name__ == "__main__":
    begin(main)
