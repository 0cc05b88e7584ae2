"""Evaluate a checkpoint of any origin as a study does, and show its scores as one row."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro
from rich.console import Console
from rich.markdown import Markdown

from geosd.cli import data, evaluate
from geosd.config import load, resolve_study, settings
from geosd.config.run_folders import RunFolders
from geosd.files import WEIGHTS
from geosd.models.released_models import copy_released_model
from geosd.problems.fresh_benchmarks import is_fresh, shown_name
from geosd.provenance.manifest import MANIFEST, read_manifest
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.reporting import saved_tables
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow, table_to_markdown
from geosd.scores.sample_tables import read_sample_table
from geosd.scores.score_table import ID, OOD_AVERAGE, ScoredRun, score_run


def main(
    folder: Annotated[Path, tyro.conf.Positional],
    protocol: str = "paper",
    model: str | None = None,
    seed: int = 0,
    out: Path | None = None,
    params: Path = Path("params.yaml"),
) -> None:
    """Evaluate any checkpoint by a study's protocol: `geosd evaluate FOLDER`.

    The samples are those of the rule `evaluate`, and a call that was killed goes on from them.

    Args:
        folder: The checkpoint as Hugging Face programs write it, in one file or in several.
        protocol: Name of the study whose problems, samples, temperature and cap are taken.
        model: The model of the study whose sampler is taken; default: its first.
        out: Folder of samples and table; default: in results/evaluated/.
    """
    study = resolve_study(load(params), protocol)
    model = model or study.models[0]
    sampled = settings("evaluate", study, model)
    _refuse_other_folders(folder)
    name = "-".join(folder.resolve().parts[-2:])
    out = out or Path("results/evaluated", f"{name}-{protocol}-{model}-{seed}")
    checkpoint, problems = folder, Path(RunFolders(study).test_problems)
    if not (folder / WEIGHTS).exists():  # in several files, where the hub's cache has links
        checkpoint = out / "checkpoint"
        cache = folder.resolve().parents[2] if folder.resolve().parent.name == "snapshots" else None
        copy_released_model(folder, checkpoint, links_into=cache)
    if not problems.exists():
        problems = out / "problems" / problems.name
        data.fetch_data_program(protocol, problems.parent, params=params)
        data.main(protocol, problems.parent, params)
    if not _is_sampled(out, {**prove_checkpoint(checkpoint), **prove([problems])}, sampled, seed):
        evaluate.main(
            protocol, model, name, seed, checkpoint, problems, out, out / "scratch", params
        )
    shutil.rmtree(out / "checkpoint", ignore_errors=True)
    prove([out / "samples.jsonl"])
    samples = read_sample_table(ScoredRun(model, name, seed), out / "samples.jsonl")
    own = [sample for sample in samples if sample.sample < sampled["samples"]]
    scores = score_run(own, study.section("evaluation", model)["pass_k"])
    table = evaluated_folder_row(
        scores, name, f"Protocol of study {protocol}, model {model}, seed {seed}"
    )
    written = saved_tables.save(table, out)
    console = Console()
    console.print(Markdown(table_to_markdown(table)))
    for path in (*written, out / "samples.jsonl"):
        console.print(f"File  {path}", markup=False, highlight=False, soft_wrap=True)


def evaluated_folder_row(scores: pd.DataFrame, name: str, note: str) -> Table:
    """The scores of one checkpoint (`score_run`) as a table of one row, in percent."""
    columns, values = zip(*_columns(scores), strict=True)
    note += (
        ". Percent; OOD avg. is the mean over the OOD benchmarks. cut: share of responses that were"
        " truncated at the cap; they have no answer."
    )
    row = TableRow(name, "", tuple(map(TableCell, values)))
    return Table("evaluation", f"Evaluation of {name}", note, "Checkpoint", columns, (row,))


def _columns(scores: pd.DataFrame) -> Iterator[tuple[TableColumn, float]]:
    """Each column and its value: accuracy, truncated share, then pass@k from small to large k."""
    names = {ID: "ID", OOD_AVERAGE: "OOD avg."}
    for name in scores["benchmark"].unique():
        names.setdefault(name, f"{shown_name(name)}, fresh" if is_fresh(name) else name)
    values = scores.set_index(["metric", "benchmark", "k"])["value"].to_dict()
    ks = sorted({k for metric, _, k in values if metric == "pass@k"})
    samples = max(k for metric, _, k in values if metric == "avg@k")
    shown = [(f"avg@{samples}", "avg@k", samples), ("cut", "truncated", samples)]
    for group, metric, k in [*shown, *((f"pass@{k}", "pass@k", k) for k in ks)]:
        for benchmark, label in names.items():
            if (metric, benchmark, k) in values:
                column = TableColumn(f"{benchmark}.{group}", label, group)
                yield column, values[metric, benchmark, k]


def _refuse_other_folders(folder: Path) -> None:
    """Say of a folder that holds no whole checkpoint how its maker writes one."""
    if (folder / "config.json").is_file():
        return
    if (folder / "adapter_config.json").is_file():
        problem = "holds adapters and no whole model"
        hint = "load it with peft, and save what `merge_and_unload()` returns with its tokenizer."
    elif (folder / "fsdp_config.json").is_file() or (folder / "actor").is_dir():
        problem = "is a checkpoint of verl in parts"
        hint = "`python -m verl.model_merger merge` writes it as Hugging Face programs do."
    else:
        problem = "holds no config.json" if folder.is_dir() else "is no folder"
        hint = "name a folder with config.json, tokenizer and *.safetensors; `hf download NAME"
        hint += " --local-dir FOLDER` fetches one of the hub."
    sys.exit(f"{folder} {problem}.\nHint: {hint}")


def _is_sampled(out: Path, inputs: dict[Path, str], sampled: dict, seed: int) -> bool:
    """Whether the folder has all samples of this call; an exit where it has those of another."""
    if not (out / MANIFEST).exists():
        return False
    made = read_manifest(out)
    found = sorted(made["inputs"].values()), made["settings"], made["seed"]
    if found != (sorted(inputs.values()), sampled, seed):
        sys.exit(
            f"{out} holds samples of another checkpoint, or of another protocol.\nHint: name"
            " another folder with --out, or remove that one."
        )
    return True
