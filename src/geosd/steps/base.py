"""Make the base model pi_0: pretrain it on a world's documents, or take a released one.

Writes the model in Hugging Face form, `loss.csv` where it was pretrained, and, last, a manifest.
A pretraining that was killed goes on from its scratch folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.files import read_jsonl, write_text
from geosd.models.checkpoints import save_model
from geosd.models.released_checkpoints import (
    copy_checkpoint,
    download_checkpoint,
    load_gguf_package,
)
from geosd.models.shipped_checkpoints import check_files
from geosd.models.tiny_architectures import build
from geosd.problems.miniature.pretraining_documents import ChainCorpus
from geosd.problems.miniature.tokenizer import build_tokenizer
from geosd.problems.pretraining_corpus import Corpus
from geosd.problems.records import Problem
from geosd.problems.search.documents import SearchCorpus
from geosd.seeds import seed_of
from geosd.steps import begin
from geosd.steps.job import Job
from geosd.training.pretrain import PretrainingArguments, pretrain
from geosd.training.resume_state import ResumeState

PROBLEM_FILES = ("train.jsonl", "select_train.jsonl", "select_validation.jsonl", "test.jsonl")
CORPORA: dict[str, type[Corpus]] = {"chains": ChainCorpus, "search": SearchCorpus}
"""The worlds' documents, by the names that `base.pretraining.corpus` allows."""


def main(
    study: str,
    model: str,
    out: Path,
    scratch: Path,
    data: Path | None = None,
    draw: int = 0,
    params: Path = Path("params.yaml"),
) -> None:
    """Make a base model pi_0: pretrain it, or take a released checkpoint.

    Args:
        study: Name of the study.
        model: Name of the model.
        out: Folder of the base model.
        scratch: Folder of the state that a killed pretraining continues from.
        data: Folder of the problems; none of their questions is pretrained on. A released model
            needs none.
        draw: The draw of a base model that the repository ships.
        params: The configuration.
    """
    job = Job("base", params, study, model, draw=draw)
    settings = job.settings
    if settings["source"] == "released":
        inputs = _released(settings["checkpoint"], out)
    elif data is None:
        raise ValueError(
            f"{model} is pretrained, and no folder of problems was given.\nHint: --data names the"
            " folder whose questions it must not be trained on."
        )
    else:
        inputs = [data / name for name in PROBLEM_FILES]
        held_out = {p.question for path in inputs for p in read_jsonl(path, Problem)}
        identity = {"settings": settings, "model": model, "held_out": sorted(held_out)}
        resume = ResumeState(scratch, identity)
        _pretrain(model, settings["pretraining"], held_out, resume, out)
    job.write_manifest(out, inputs, model=model, draw=draw)
    if settings["source"] == "pretrained":
        resume.clear()


def _released(checkpoint: Mapping[str, Any], out: Path) -> dict[Path, str]:
    """Take a released checkpoint, and return the files that were read where they are pinned."""
    if pinned := checkpoint.get("files"):
        folder = Path(checkpoint["folder"])
        check_files(folder, pinned)
        copy_checkpoint(folder, out)
        return {folder / name: digest for name, digest in pinned.items()}
    if folder := checkpoint.get("folder"):
        copy_checkpoint(Path(folder), out)
    elif checkpoint.get("repo"):
        copy_checkpoint(download_checkpoint(checkpoint["repo"], checkpoint["revision"]), out)
    else:
        save_model(
            *load_gguf_package(*(checkpoint[key] for key in ("package", "file", "sha256"))), out
        )
    return {}


def _pretrain(
    model: str, settings: Mapping[str, Any], held_out: set[str], resume: ResumeState, out: Path
) -> None:
    recipe = dict(settings)
    seed = recipe.pop("seed")
    corpus = CORPORA[recipe.pop("corpus", "chains")]()
    tokenizer = build_tokenizer(corpus.vocabulary)
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
        corpus,
        held_out,
        PretrainingArguments(**recipe),
        seed,
        resume,
        progress=f"base {model}",
    )
    rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
    write_text(out / "loss.csv", "step,loss_nats\n" + rows)
    save_model(network, tokenizer, out)


if __name__ == "__main__":
    begin(main)
