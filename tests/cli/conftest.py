"""A study of a few steps, run through the programs that the workflow runs."""

import os
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from matplotlib.figure import Figure
from planner import programs

from geosd.cli import base, data, evaluate, pool, train
from geosd.cli.forkserver import PRELOADED
from geosd.json_lines import read_jsonl, write_jsonl
from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.problems.search.corpora import BLIND, draw_corpus_solution
from geosd.problems.search.equations import EquationPair

ROOT = Path(__file__).parents[2]
LAUNCHED = (*PRELOADED, "geosd.cli.train", "accelerate.commands.launch", "torch.distributed.run")
SMALL = {
    "data": {
        "train": 8,
        "select_train": 8,
        "select_validation": 6,
        "test_id": 6,
        "test_per_benchmark": 3,
    },
    "pool": {"rollouts": 4, "keep": 4, "response_tokens": 16},
    "training": {
        "steps": 4,
        "warmup": 2,
        "response_tokens": 40,  # GRPO learns from right answers alone, and they must fit
        "save_every": 1,
        "diagnose_every": 2,
        "final_rollouts": 4,
        "anchor_every": 2,
    },
    "evaluation": {"samples": 4, "pass_k": [1, 4], "response_tokens": 16},
}


def shrunk(params: Path, folder: Path) -> Path:
    """params.yaml with study quick, and its selection, made small; each program checks all."""
    values = yaml.safe_load(params.read_text())
    values["studies"] = {name: values["studies"][name] for name in ("quick", "quick_selection")}
    for study in values["studies"].values():
        for section, changes in SMALL.items():
            study.setdefault(section, {}).update(changes)
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def no_png(monkeypatch):
    """Leave PNG files empty: git keeps none, and each takes as long as the rest of its figure."""
    save = Figure.savefig

    def saved(figure, path, *, format, **options):
        Path(path).touch() if format == "png" else save(figure, path, format=format, **options)

    monkeypatch.setattr(Figure, "savefig", saved)


@pytest.fixture
def launched_python(monkeypatch):
    """A `python` that is first on PATH, whose launchers and ranks need not import torch."""
    folder = programs(*LAUNCHED)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return str(folder / "python")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small study up to its pool: folders, the arguments that all programs share, the next two.

    Four rollouts leave some problems unsolved, so the pool is made by a search that checks.
    """
    folder = tmp_path_factory.mktemp("small")
    params = shrunk(ROOT / "params.yaml", folder)
    shared = {"study": "quick", "params": params}
    data.main(out=folder / "data", **shared)
    base.main(
        model="mini-qwen3",
        out=folder / "base",
        scratch=folder / "scratch",
        **shared,
    )
    problems = folder / "data/train.jsonl"
    pool.main(
        model="mini-qwen3",
        base=folder / "base",
        problems=problems,
        out=folder / "drawn",
        scratch=folder / "scratch",
        **shared,
    )
    draw, checks = random.Random(0), replace(BLIND, check=1.0)
    rows = [
        PooledSolutionsRecord(
            p.id, (draw_corpus_solution(EquationPair.parse(p.question), checks, draw),), 4, 1
        )
        for p in read_jsonl(problems, Problem)
    ]
    write_jsonl(folder / "pool.jsonl", rows)

    def trained(
        out, variant="geosd", seed=0, pool=folder / "pool.jsonl", snapshots=(), params=params
    ):
        """Train a student into a folder, and return the folder."""
        train.main(
            study="quick",
            model="mini-qwen3",
            variant=variant,
            seed=seed,
            base=folder / "base",
            problems=problems,
            pool=pool,
            out=out,
            scratch=out.with_name(out.name + "-scratch"),
            params=params,
            snapshots=tuple(snapshots),
        )
        return out

    def sampled(out, checkpoint=folder / "base", variant="pi_0", seed=0):
        """Sample a checkpoint on the test problems into a folder, and return the folder."""
        evaluate.main(
            model="mini-qwen3",
            variant=variant,
            seed=seed,
            checkpoint=checkpoint,
            problems=folder / "data/test.jsonl",
            out=out,
            scratch=out.with_name(out.name + "-scratch"),
            **shared,
        )
        return out

    def training_options(**given):
        """The words behind `geosd train` for a training with GeoSD; `given` are further options."""
        options = dict(study="quick", model="mini-qwen3", variant="geosd", seed=0, **given)
        options |= {"base": folder / "base", "problems": problems, "pool": folder / "pool.jsonl"}
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]

    return SimpleNamespace(
        folder=folder,
        shared=shared,
        train=problems,
        base=folder / "base",
        training_options=training_options,
        trained=trained,
        sampled=sampled,
    )
