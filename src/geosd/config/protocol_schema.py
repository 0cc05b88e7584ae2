"""The schema of the paper's protocol: a class for each section, a documented field for each key.

No field has a default. Every value stands in params.yaml, where it can be read, compared and
changed; this file only says what the value means, its unit, and what is allowed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from geosd.config.schema_base import (
    Count,
    Distinct,
    Name,
    Rate,
    Section,
    Seed,
    Share,
    Temperature,
    WeightDecay,
    WholeNumber,
    at_most,
)
from geosd.config.training_schema import Recipe


class Data(Section):
    """Protocol section `data`: problems and their splits, disjoint by question."""

    source: Name
    """Where problems come from, a name of geosd.problems.sources: `dapo-math` is DAPO-Math-17k and
    the paper's four benchmarks (Appendix "Data and privileged context"), `search` is the
    miniature's world, `word-problems` has arithmetic in English, `jsonl` reads files of one's
    own."""
    raw: Annotated[str, Field(min_length=1)] | None
    """Folder of DAPO-Math's and the benchmarks' raw files, docs/data.md; file or folder of one's
    own problems, docs/extending.md; other sources need none."""
    thinking: bool
    """Whether a chat model is asked to think before it answers, where its template lets one choose.
    Not given in the paper; docs/prompts.md says why it is on."""
    overlaps: Literal["exclude", "keep"]
    """Whether DAPO problems that are also in a benchmark are left out, or drawn and only reported.
    Not given in the paper."""
    purpose: Literal["study", "selection", "validation"]
    """A study trains on `train` and is judged on the benchmarks. A selection of hyperparameters is
    judged on `select_validation` alone, and trains on `select_train`, Appendix "Baselines", or for
    `validation` on `train`: then its runs are those of the studies that use what it selects."""
    seed: Seed
    """Seed of the draw of problems. Not given in the paper."""
    train: Count
    """Training problems. Appendix "Data": 1K."""
    select_train: Count
    """Problems on which candidate hyperparameters are trained. Appendix "Baselines": 100."""
    select_validation: Count
    """Problems on which candidates are compared. Appendix "Baselines": 200."""
    test_id: Count
    """Held-out in-distribution problems. Appendix "Evaluation": 500."""
    test_per_benchmark: Count | None
    """Problems of each out-of-distribution benchmark; null takes the whole benchmark, as the paper
    does (AIME 30 each, AMC 40, MATH-500 500)."""


class Pretraining(Section):
    """Protocol section `base.pretraining`: how a base model of the miniature is made."""

    architecture: str
    """Name of a tiny architecture (`geosd.models.tiny_architectures`)."""
    corpus: Literal["search"]
    """World whose documents it is pretrained on, docs/search.md."""
    steps: Count
    """Optimiser steps."""
    documents: Count
    """Documents in a step."""
    learning_rate: Rate
    """Peak learning rate of Muon, which trains the matrices; AdamW's tensors take half of it."""
    warmup: Annotated[WholeNumber, at_most("steps")]
    """Steps of linear warm-up."""
    decay: Share
    """Fraction of the steps, the last ones, over which the learning rate falls to zero."""
    weight_decay: WeightDecay
    """Decoupled weight decay of Muon; AdamW's tensors have none."""
    seed: Seed
    """Seed of the initial weights and of the order of the documents."""


class Checkpoint(Section):
    """Protocol section `base.checkpoint`: where a released checkpoint lies."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None
    """Repository of the hub, `owner/name`."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None
    """Commit of that repository: a branch can move, a commit cannot."""
    folder: Annotated[str, Field(min_length=1)] | None
    """Folder with the same files, taken instead of the hub: nothing is fetched."""
    package: Annotated[str, Field(pattern=r"^\w+$")] | None
    """Installed Python package that carries the weights as a GGUF file."""
    file: Annotated[str, Field(pattern=r"^[\w.-]+\.gguf$")] | None
    """That GGUF file, inside the package."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    """Its SHA-256."""


class Base(Section):
    """Protocol section `base`: the base model pi_0."""

    source: Literal["released", "pretrained"]
    """A released checkpoint (Appendix "Models"), or one trained from scratch on the miniature
    world."""
    checkpoint: Checkpoint | None
    """Where the released checkpoint lies; null where the model is pretrained here."""
    pretraining: Pretraining | None
    """How the model is pretrained; null where the checkpoint is released."""


class Pool(Section):
    """Protocol section `pool`: verified solutions of pi_0, the teacher's privileged contexts."""

    rollouts: Count
    """Rollouts of pi_0 for each problem. Table hparams: up to 32."""
    keep: Annotated[Count, at_most("rollouts")]
    """Verified solutions kept for a problem, at most. Table hparams: 10."""
    temperature: Temperature
    """Sampling temperature. Appendix "Data": 1.0."""
    response_tokens: Count
    """Longest rollout, in tokens. Not given; the training cap of 4096 is taken."""
    seed: Seed
    """Seed of the rollouts. Not given in the paper."""
    least_share: Annotated[float, Field(ge=0, le=1)]
    """Least share of the training problems that must have a verified solution; with fewer, no
    training starts. Changing it makes nothing anew. Not given in the paper."""


class Evaluation(Section):
    """Protocol section `evaluation`: how checkpoints are sampled. Appendix "Evaluation"."""

    samples: Count
    """Samples for each problem. Table hparams: 16."""
    coverage: Count | None
    """Samples for each OOD problem, at least `samples`; null: as many. Pass@k of Figure consensus
    is read off all of them (Robustness: to k = 32), everything else off the first `samples`."""
    pass_k: Annotated[tuple[Count, ...], Field(min_length=1), Distinct, at_most("samples")]
    """The k of the pass@k reported, none above samples. Table hparams: 16. Read by the analysis
    only: changing it samples nothing anew."""
    temperature: Temperature
    """Sampling temperature. Table hparams: 0.6."""
    top_p: Share
    """Nucleus of sampling. Table hparams: 0.95."""
    response_tokens: Count
    """Longest response, in tokens. Table hparams: 8192."""


class Rollout(Section):
    """Protocol section `rollout`: what samples, for pool, training and evaluation alike."""

    engine: Literal["transformers", "vllm"]
    """transformers needs nothing more; vllm is the extra of that name, docs/rollouts.md."""
    sequences: Count
    """Responses in flight at once: rows of a batch of transformers, max_num_seqs of vLLM."""
    compile: bool
    """Whether one step of decoding is compiled for this machine. Read by transformers only."""
    precision: Literal["auto", "bfloat16", "float32"]
    """Type of the engine's copy of the weights; `auto` as in training. In a training transformers
    has no copy: it samples in training.precision."""
    tensor_parallel: Count
    """Devices that share each matrix. Read by vllm only, as all that follow."""
    memory: Share
    """Share of a device's memory for the engine's weights and cache where a training's models lie
    beside it, and of the host's memory on a CPU; alone on a GPU the engine takes .9."""
    process: Literal["own", "same"]
    """Whether the engine has a process of its own, or runs in the trainer's."""


class Protocol(Section):
    """The paper's protocol: all sections, each value with its place in the paper."""

    data: Data
    base: Base
    pool: Pool
    training: Recipe
    evaluation: Evaluation
    rollout: Rollout
