"""The schema of the paper's protocol: a class for each section, a documented field for each key.

No field has a default. Every value stands in params.yaml, where it can be read, compared and
changed; this file only says what the value means, its unit, and what is allowed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model, model_validator

from geosd.config.data_schema import Data
from geosd.config.schema_base import (
    Ascending,
    Batch,
    Decay,
    Distinct,
    Name,
    Nucleus,
    PathWords,
    Rate,
    Samples,
    SectionSchema,
    Seed,
    Share,
    Steps,
    StepsOrNone,
    StrictSchema,
    Temperature,
    Tokens,
    WeightDecay,
    optional_schema,
    schema_at_most,
)
from geosd.objectives.hyperparameters import (
    Hyperparameter,
    declared_hyperparameters,
    declared_rollouts,
)
from geosd.optim.layer_selection import FUSED, PROJECTIONS


def _objective(name: str, hyperparameters: tuple[Hyperparameter, ...]) -> type[StrictSchema]:
    """The section of one objective: its name, and what its class declares, each key optional."""
    keys: dict[str, Any] = {
        one.name: (one.annotation, Field(default_factory=lambda: None, description=one.meaning))
        for one in hyperparameters
    }
    named = (Literal[name], Field(description="Name under which geosd.objectives registers it."))
    made = create_model(f"Objective_{name}", __base__=StrictSchema, name=named, **keys)
    made.__doc__ = f"The loss of geosd.objectives.{name.replace('-', '_')}, with its own keys."
    return made


HYPERPARAMETERS = declared_hyperparameters()
ROLLOUTS = declared_rollouts()
"""Name of each objective -> what it trains on: student, group or solution."""
OBJECTIVES = tuple(_objective(name, keys) for name, keys in HYPERPARAMETERS.items())
Objective = Annotated[Union[OBJECTIVES], Field(discriminator="name")]  # noqa: UP007


class KfacProtocol(SectionSchema):
    """Protocol section `training.optimiser.kfac`: curvature. Appendix "Kronecker factorization"."""

    blocks: Annotated[int, Field(gt=0, le=4096)]
    """Diagonal blocks g of each factor. Table hparams: 16 up to 8B, 32 at 14B and 32B."""
    decay: Decay
    """Decay of the factors' moving averages, bias corrected. Not given; .95 as in kfac-jax and
    kfac-pytorch."""
    damping: Annotated[float, Field(ge=1e-10, le=100)]
    """Damping gamma; each factor is damped by its square root. Table hparams: 10^-3."""
    subsample: Share
    """Share of the non-padding positions that enter the factors. Table hparams: 1/8."""
    inverse_every: Steps
    """Steps between two factorisations. Not given; 1, because blocks are small."""
    per_token: bool
    """Whether G is made of the gradients of single tokens' losses, or of the mean loss as
    backpropagated, which are smaller by the number of tokens. Not given; docs/reading.md."""
    storage: Literal["float32", "bfloat16"]
    """Type in which factors are stored. Appendix: float32 up to 8B, bfloat16 at 14B and 32B."""
    least_share: Annotated[float, Field(ge=0, le=1)] = optional_schema(1.0)
    """Least share of the weights of the blocks that K-FAC must take: it takes linear layers, and no
    experts in one tensor of three dimensions. Left out: all. Not given; a model with less is
    refused, and its manifest names what is left out."""


class OptimiserProtocol(SectionSchema):
    """Protocol section `training.optimiser`: the update rule."""

    rule: Literal["adamw", "kfac", "muon"]
    """AdamW for all baselines, K-FAC natural gradient for GeoSD. Table hparams. Muon, which is not
    in the paper, takes the projections in K-FAC's place, and leaves the rest to AdamW."""
    inner: Literal["adamw", "plain"]
    """The step on the preconditioned gradient: AdamW, or a plain one (the paper's formula taken
    literally). Not given; adamw, because the paper's memory table includes Adam's moments."""
    kfac: KfacProtocol
    """Read only where the rule is kfac."""


class LoraProtocol(SectionSchema):
    """Protocol section `training.lora`: low-rank matrices train in place of the weights."""

    rank: Annotated[int, Field(gt=0, le=1024)]
    """Rank of the matrices."""
    alpha: Annotated[float, Field(ge=0.01, le=4096)]
    """alpha / rank is the factor of their product."""
    targets: Annotated[tuple[Literal[PROJECTIONS + FUSED], ...], Field(min_length=1), Distinct]
    """Linear layers of each block that get them; a model needs one of each name."""


class RecipeProtocol(SectionSchema):
    """Protocol section `training`, which all methods share. Appendix "Training", Table hparams."""

    steps: Steps
    """Optimiser steps. Table hparams: 625 (5 epochs)."""
    problems: Batch
    """Problems in a step, one rollout each. Appendix "Training": 8."""
    group: Batch
    """Rollouts on the one problem of a GRPO step. Table hparams: G = 8."""
    temperature: Temperature
    """Sampling temperature of rollouts. Appendix "Training": 1.0."""
    response_tokens: Tokens
    """Longest rollout, in tokens. Table hparams: 4096."""
    learning_rate: Rate
    """Peak learning rate. Table hparams: 1 x 10^-6."""
    betas: tuple[Decay, Decay]
    """Decays of AdamW's two moments. Table hparams: .9, .95."""
    weight_decay: WeightDecay
    """Decoupled weight decay. Not given; 0, because none is mentioned."""
    warmup: Annotated[StepsOrNone, schema_at_most("steps")]
    """Steps of linear warm-up. Table hparams: 20."""
    precision: Literal["auto", "bfloat16", "float32"]
    """Type of the forward and backward passes; master weights are float32. `auto` is bfloat16 where
    the device multiplies it faster (CUDA, AMX, AMD's AVX512-BF16); the manifest says which it was.
    Table hparams: bfloat16."""
    storage: Literal["float32", "bfloat16"]
    """Type in which final weights and snapshots are stored; the states that a run continues from
    are float32 either way. Not given; bfloat16, in which the checkpoints are sampled."""
    top_k: Annotated[int, Field(gt=0, le=2**18)] | None
    """Logits K kept of student, teacher and anchor each; the union is renormalised. null: the whole
    vocabulary, exactly. Table hparams: 1024."""
    anchor_every: Steps
    """Steps K_ckpt between two refreshes of the anchor theta_ckpt; with more than the run has, the
    anchor stays pi_0. Table hparams: 64."""
    loss_mean: Literal["sequence", "token"]
    """The units of the loss's mean: positions within a sequence and then sequences (the 1/T inside
    the expectation of the paper's L_distil), or all positions of the step."""
    privilege: Annotated[float, Field(ge=0, le=1)]
    """Share of the solution that the teacher sees. The default context is a full solution: 1."""
    teacher: Literal["live", "fixed", "delayed", "average", "solution_only", "purified"]
    """Which weights the teacher has: the student's own (Method, "the current student"), pi_0's, the
    anchor's, or a moving average of the student's. The paper names these four and uses the first.
    `solution_only` is pi_0 with the solution and no question; `purified` is pi_0's distribution,
    moved by what the question adds to the solution (Purified OPSD, docs/reading.md)."""
    teacher_decay: Decay
    """Decay, in a step, of a teacher that is an average. Not given; read by that teacher only."""
    save_every: Steps
    """Steps between two saves of the resume state. Not given; a matter of the cluster."""
    max_skipped_steps: StepsOrNone
    """Steps whose loss, gradient or K-FAC factors are not finite that a run may have: each is
    skipped and changes no weight; one more ends the run. Not given."""
    snapshots: Annotated[tuple[Steps, ...], Distinct, Ascending, schema_at_most("steps")]
    """Steps after which the student's weights are kept, for figures over checkpoints; the last step
    always is. Which ones the paper takes is not given."""
    diagnose_every: Steps
    """Steps between two measurements that cost extra forward passes, such as the drift from pi_0;
    with more than the run has, the first step and the end are measured. Not given."""
    final_rollouts: Annotated[int, Field(gt=0, le=4096)]
    """Rollouts of the trained student, one each to so many training problems, on which drift,
    overlap and support are measured after the last step. Not given."""
    chunk: Annotated[int, Field(gt=0, le=2**17)]
    """Response positions whose logits are held at once. Not given; a matter of memory, not of the
    result."""
    microbatch: Batch | None
    """Responses that a process takes through the models at once; null takes all that it has. The
    update is one of the whole step either way. Not given; a matter of memory."""
    recompute: bool
    """Whether the backward pass makes each block's activations anew instead of keeping them. Not
    given; a matter of memory."""
    optimiser: OptimiserProtocol
    """The update rule."""
    lora: LoraProtocol | None = optional_schema(None)
    """{rank: ..., alpha: ..., targets: [...]}: only adapters train, anchor and pi_0 share all other
    weights with the student, and what is evaluated has them merged. One process trains. Left out,
    or null: all weights train, as in the paper."""


class TrainingProtocol(RecipeProtocol):
    """Protocol section `training` of one variant: the shared recipe, and its objective."""

    objective: Objective  # type: ignore[valid-type]
    """The variant's loss, with its hyperparameters."""

    @model_validator(mode="after")
    def _read_together(self) -> TrainingProtocol:
        """Refuse a hyperparameter that the objective, with its other ones, does not read."""
        given = self.objective.model_dump(exclude_unset=True)
        declared_here = HYPERPARAMETERS[given["name"]]
        values = {one.name: given.get(one.name, one.default) for one in declared_here}
        for one in declared_here:
            if problem := one.conflict(values):
                raise ValueError(f"objective.{one.name} is {values[one.name]!r}; {problem}")
        return self


class PretrainingProtocol(SectionSchema):
    """Protocol section `base.pretraining`: how a base model of the miniature is made."""

    architecture: Name
    """Name of a tiny architecture (`geosd.models.tiny_models`)."""
    corpus: Literal["search", "search-wide"]
    """World whose documents it is pretrained on, docs/search.md and docs/wide.md."""
    start: PathWords | None = optional_schema(None)
    """Folder of draws of a base model of that architecture that knows fewer words; its draw of the
    same number is trained further. Left out, or null: random weights."""
    steps: Steps
    """Optimiser steps."""
    documents: Batch
    """Documents in a step."""
    learning_rate: Rate
    """Peak learning rate of Muon, which trains the matrices; AdamW's tensors take half of it."""
    warmup: Annotated[StepsOrNone, schema_at_most("steps")]
    """Steps of linear warm-up."""
    decay: Share
    """Fraction of the steps, the last ones, over which the learning rate falls to zero."""
    weight_decay: WeightDecay
    """Decoupled weight decay of Muon; AdamW's tensors have none."""
    seed: Seed
    """Seed of the initial weights and of the order of the documents."""


class CheckpointProtocol(SectionSchema):
    """Protocol section `base.checkpoint`: where a released checkpoint lies."""

    repo: Annotated[str, Field(pattern=r"^\w[\w.-]*/\w[\w.-]*$", max_length=200)] | None
    """Repository of the hub, `owner/name`."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None
    """Commit of that repository: a branch can move, a commit cannot."""
    folder: PathWords | None
    """Folder with the same files, taken instead of the hub: nothing is fetched."""
    package: Annotated[str, Field(pattern=r"^\w+$")] | None
    """Installed Python package that carries the weights as a GGUF file."""
    file: Annotated[str, Field(pattern=r"^[\w.-]+\.gguf$")] | None
    """A GGUF file of the repository, the folder or the package that holds weights and tokenizer;
    null where they are files of their own. The weights are dequantised."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    """SHA-256 of that file, compared before anything of it is read. Results are named by it, not by
    the folder."""


class BaseProtocol(SectionSchema):
    """Protocol section `base`: the base model pi_0."""

    source: Literal["released", "pretrained"]
    """A released checkpoint (Appendix "Models"), or one trained from scratch on the miniature
    world."""
    checkpoint: CheckpointProtocol | None
    """Where the released checkpoint lies; null where the model is pretrained here."""
    pretraining: PretrainingProtocol | None
    """How the model is pretrained; null where the checkpoint is released."""


class PoolProtocol(SectionSchema):
    """Protocol section `pool`: verified solutions, the teacher's privileged contexts."""

    solutions: Literal["rollouts", "given", "both"]
    """Rollouts of pi_0, as in Appendix "Data"; the data set's own worked solutions; or these before
    the rollouts."""
    rollouts: Samples
    """Rollouts of pi_0 for each problem. Table hparams: up to 32."""
    keep: Annotated[Samples, schema_at_most("rollouts")]
    """Verified solutions kept for a problem, at most. Table hparams: 10."""
    temperature: Temperature
    """Sampling temperature. Appendix "Data": 1.0."""
    response_tokens: Tokens
    """Longest rollout, in tokens. Not given; the training cap of 4096 is taken."""
    seed: Seed
    """Seed of the rollouts. Not given in the paper."""
    least_share: Annotated[float, Field(ge=0, le=1)]
    """Least share of the training problems that must have a verified solution; with fewer, no
    training starts. Changing it makes nothing anew. Not given in the paper."""


class EvaluationProtocol(SectionSchema):
    """Protocol section `evaluation`: how checkpoints are sampled. Appendix "Evaluation"."""

    samples: Samples
    """Samples for each problem. Table hparams: 16."""
    coverage: Samples | None
    """Samples for each OOD problem, at least `samples`; null: as many. Pass@k of Figure consensus
    is read off all of them (Robustness: to k = 32), everything else off the first `samples`."""
    allocation: dict[Name, Samples] | None = optional_schema(None)
    """Benchmark (`id` or an OOD one) -> samples for each of its problems, in place of `samples` and
    `coverage`; null: none. docs/lean.md."""
    pass_k: Annotated[
        tuple[Samples, ...], Field(min_length=1), Distinct, Ascending, schema_at_most("samples")
    ]
    """The k of the pass@k reported, ascending, none above samples. Table hparams: 16. Read by the
    analysis only: changing it samples nothing anew."""
    temperature: Temperature
    """Sampling temperature. Table hparams: 0.6."""
    top_p: Nucleus
    """Nucleus of sampling. Table hparams: 0.95."""
    response_tokens: Tokens
    """Longest response, in tokens. Table hparams: 8192."""


class RolloutProtocol(SectionSchema):
    """Protocol section `rollout`: what samples, for pool, training and evaluation alike."""

    engine: Literal["transformers", "vllm"]
    """transformers needs nothing more; vllm is the extra of that name, docs/scaling.md."""
    sequences: Annotated[int, Field(gt=0, le=8192)]
    """Responses in flight at once: rows of a batch of transformers, max_num_seqs of vLLM."""
    compile: bool
    """Whether one step of decoding is compiled for this machine. Read by transformers only."""
    packed: bool = optional_schema(False)
    """Whether decoding on a CPU reads the weights of linear layers from copies in oneDNN's order,
    made for each batch; not with compile. Last bits of logits differ by it. Left out: false. Read
    by transformers only."""
    precision: Literal["auto", "bfloat16", "float32"]
    """Type of the engine's copy of the weights; `auto` as in training. In a training transformers
    has no copy: it samples in training.precision."""
    tensor_parallel: Annotated[int, Field(gt=0, le=64)]
    """Devices that share each matrix. Read by vllm only, as all that follow."""
    memory: Annotated[float, Field(ge=0.05, le=0.95)]
    """Share of a device's memory for the engine's weights and cache where a training's models lie
    next to it, and of the host's memory on a CPU; alone on a GPU the engine takes .9."""
    process: Literal["own", "same"]
    """Whether the engine has a process of its own, or runs in the trainer's."""

    @model_validator(mode="after")
    def _one_step(self) -> RolloutProtocol:
        """Refuse two ways to compute a step."""
        if self.packed and self.compile:
            raise ValueError("packed is true, and so is compile; a step is one or the other")
        return self

    @model_validator(mode="after")
    def _one_device(self) -> RolloutProtocol:
        """Refuse several devices of an engine that runs in the trainer's process."""
        if self.engine == "vllm" and self.process == "same" and self.tensor_parallel > 1:
            raise ValueError(
                f"tensor_parallel is {self.tensor_parallel}; with process: same it must be 1"
            )
        return self


class Protocol(SectionSchema):
    """The paper's protocol: all sections, each value with its place in the paper."""

    data: Data
    base: BaseProtocol
    pool: PoolProtocol
    training: RecipeProtocol
    evaluation: EvaluationProtocol
    rollout: RolloutProtocol
