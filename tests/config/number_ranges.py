"""The range of every number of params.yaml, written by hand: what least and most mean something.

A number that has no line here has a bound in another key, or in the data, and a test of its own.
"""

STEPS, TOKENS, SAMPLES, BATCH = (1, 100_000), (1, 131_072), (1, 1024), (1, 1024)
RATE, TEMPERATURE = (1e-10, 1.0), (0.01, 5.0)
SEED = (0, 2**31 - 1)
PROBLEMS = (1, 1_000_000)
GPUS = (0, 64)

PROTOCOL = {
    "data.seed": SEED,
    "data.train": PROBLEMS,
    "data.select_train": PROBLEMS,
    "data.select_validation": PROBLEMS,
    "data.test_id": PROBLEMS,
    "pool.rollouts": SAMPLES,
    "pool.keep": SAMPLES,
    "pool.temperature": TEMPERATURE,
    "pool.response_tokens": TOKENS,
    "pool.seed": SEED,
    "pool.least_share": (0.0, 1.0),
    "training.steps": STEPS,
    "training.problems": BATCH,
    "training.group": BATCH,
    "training.temperature": TEMPERATURE,
    "training.response_tokens": TOKENS,
    "training.learning_rate": RATE,
    "training.betas.0": (0.0, 0.99999),
    "training.betas.1": (0.0, 0.99999),
    "training.weight_decay": (0.0, 1.0),
    "training.warmup": (0, 100_000),
    "training.top_k": (1, 262_144),
    "training.anchor_every": STEPS,
    "training.privilege": (0.0, 1.0),
    "training.teacher_decay": (0.0, 0.99999),
    "training.save_every": STEPS,
    "training.max_skipped_steps": (0, 100_000),
    "training.diagnose_every": STEPS,
    "training.final_rollouts": (1, 4096),
    "training.chunk": (1, 131_072),
    "training.microbatch": BATCH,
    "training.optimiser.kfac.blocks": (1, 4096),
    "training.optimiser.kfac.decay": (0.0, 0.99999),
    "training.optimiser.kfac.damping": (1e-10, 100.0),
    "training.optimiser.kfac.subsample": (0.001, 1.0),
    "training.optimiser.kfac.inverse_every": STEPS,
    "evaluation.samples": SAMPLES,
    "evaluation.pass_k.0": SAMPLES,
    "evaluation.pass_k.1": SAMPLES,
    "evaluation.pass_k.2": SAMPLES,
    "evaluation.pass_k.3": SAMPLES,
    "evaluation.pass_k.4": SAMPLES,
    "evaluation.temperature": TEMPERATURE,
    "evaluation.top_p": (0.01, 1.0),
    "evaluation.response_tokens": TOKENS,
    "rollout.sequences": (1, 8192),
    "rollout.tensor_parallel": (1, 64),
    "rollout.memory": (0.05, 0.95),
}
"""Keys of the protocol."""
PRETRAINING = {
    "steps": STEPS,
    "documents": BATCH,
    "learning_rate": RATE,
    "warmup": (0, 100_000),
    "decay": (0.001, 1.0),
    "weight_decay": (0.0, 1.0),
    "seed": SEED,
}
"""Keys of a model's `base.pretraining`."""
JOB = {"gpus": GPUS, "mem_mb": (100, 20_000_000), "minutes": (1, 86_400)}
"""Keys of each job in an entry of `resources`."""
TRAINING_JOB = {**JOB, "inference_gpus": GPUS}
OBJECTIVES = {
    "grpo.clip": (0.001, 1.0),
    "grpo.kl_coefficient": (0.0, 100.0),
    "grpo.std_epsilon": (1e-12, 1.0),
    "jsd.beta": (0.001, 0.999),
    "skewkl.alpha": (0.0, 0.999),
    "tropd.agreement_threshold": (0.0, 1.0),
    "tropd.outlier_cap": (0.0, float("inf")),
    "tip.retained_fraction": (0.001, 1.0),
    "tip.entropy_weight": (0.0, 1.0),
    "geosd.drift_penalty": (0.0, 1000.0),
    "geosd_jsd.beta": (0.001, 0.999),
    "geosd_no_prox.drift_penalty": (0.0, 1000.0),
    "opsd.clip": (1e-4, float("inf")),
    "opsd.temperature": TEMPERATURE,
}
"""Keys of the variants' objectives."""


def ranges() -> dict[tuple[str | int, ...], tuple[float, float]]:
    """The range of each number by its path in params.yaml."""

    def path(text: str) -> tuple[str | int, ...]:
        return tuple(int(key) if key.isdigit() else key for key in text.split("."))

    found = {("protocol", *path(key)): bounds for key, bounds in PROTOCOL.items()}
    recipe = ("models", "mini-qwen3", "base", "pretraining")
    found |= {(*recipe, key): bounds for key, bounds in PRETRAINING.items()}
    for rule in ("base", "pool", "train", "evaluate", "states", "alignment"):
        keys = TRAINING_JOB if rule == "train" else JOB
        found |= {("resources", "default", rule, key): bounds for key, bounds in keys.items()}
    for key, bounds in OBJECTIVES.items():
        variant, name = key.split(".")
        found["variants", variant, "training", "objective", name] = bounds
    return found
