"""Make the base model pi_0: pretrain it on the miniature's documents, or take a released one.

Writes the model in Hugging Face form, `loss.csv` where it was pretrained, and, last, a manifest.
A pretraining that was killed goes on from its scratch folder. One that another study has done
already, with the same settings, code, packages and questions held out, is not done again: its files
are copied, and the manifest says from where.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.config import load as load_params
from geosd.config import resolve
from geosd.config import settings as settings_of
from geosd.files import read_jsonl, write_json, write_text
from geosd.models.checkpoints import save_model
from geosd.models.released_checkpoints import (
    copy_checkpoint,
    download_checkpoint,
    load_gguf_package,
)
from geosd.models.tiny_architectures import build
from geosd.problems.miniature.pretraining_documents import PretrainingCorpus
from geosd.problems.miniature.tokenizer import build_tokenizer
from geosd.problems.records import Problem
from geosd.provenance.manifest import manifest
from geosd.provenance.reuse import origin, take, twin
from geosd.seeds import seed_of
from geosd.steps import begin
from geosd.training.pretrain import Pretraining, pretrain
from geosd.training.resume_state import ResumeState

PROBLEM_FILES = ("train.jsonl", "select.jsonl", "test.jsonl")


def main(
    study: str,
    model: str,
    data: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
    others: tuple[Path, ...] = (),
) -> None:
    """Make the base model.

    Args:
        study: Name of the study.
        model: Name of the model.
        data: Folder of the study's problems; none of their questions is pretrained on.
        out: Folder of the base model.
        scratch: Folder of the state that a killed pretraining continues from.
        params: The configuration.
        others: Folders in which other studies may have the same base model.
    """
    began = time.monotonic()
    settings = settings_of("base", resolve(load_params(params), study), model)
    inputs = [data / name for name in PROBLEM_FILES]
    told = {**settings, "model": model}
    if settings["source"] == "pretrained":
        held_out = {p.question for path in inputs for p in read_jsonl(path, Problem)}
        questions = hashlib.sha256("\n".join(sorted(held_out)).encode()).hexdigest()
        made_of = {"settings": told, "held_out": questions}
        resume = ResumeState(scratch, made_of)
        taken_from = twin(others, out, made_of)
        if taken_from is None:
            _pretrain(model, settings["pretraining"], held_out, resume, out)
        else:
            take(taken_from, out)
        told_of_it = origin(made_of, out, taken_from)
    else:
        resume, told_of_it = None, {}
        _released(settings["checkpoint"], out)
    written = manifest(inputs, told, time.monotonic() - began)
    write_json(out / "manifest.json", {**written, **told_of_it})
    if resume is not None:
        resume.clear()


def _released(checkpoint: Mapping[str, Any], out: Path) -> None:
    if folder := checkpoint.get("folder"):
        copy_checkpoint(Path(folder), out)
    elif checkpoint.get("repo"):
        copy_checkpoint(download_checkpoint(checkpoint["repo"], checkpoint["revision"]), out)
    else:
        save_model(
            *load_gguf_package(*(checkpoint[key] for key in ("package", "file", "sha256"))), out
        )


def _pretrain(
    model: str, settings: Mapping[str, Any], held_out: set[str], resume: ResumeState, out: Path
) -> None:
    tokenizer = build_tokenizer()
    recipe = dict(settings)
    seed = recipe.pop("seed")
    network = build(
        model,
        len(tokenizer),
        tokenizer.pad_token_id,
        tokenizer.eos_token_id,
        seed=seed_of(seed, "weights"),
    )
    losses = pretrain(
        network,
        tokenizer,
        PretrainingCorpus(),
        held_out,
        Pretraining(**recipe),
        seed,
        resume,
        progress=f"base {model}",
    )
    rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
    write_text(out / "loss.csv", "step,loss_nats\n" + rows)
    save_model(network, tokenizer, out)


if __name__ == "__main__":
    begin(main)
