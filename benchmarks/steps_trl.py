"""Whole training steps of TRL's trainers, by phase, in an environment that has TRL.

    .venv-trl-bench/bin/python benchmarks/steps_trl.py --models 0.8M --kinds gkd distillation

Prompts, weights and lengths are those of `steps_geosd.py`. Completions have full length: tokens
that would end one are replaced after sampling, which costs nothing a token. The phases are taken by
wrapping the trainer's model, teacher, accelerator and optimiser.
"""

from __future__ import annotations

import inspect
import itertools
import os
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")

import synthetic
import torch
from datasets import Dataset
from measuring import (
    PhaseClock,
    Stopwatch,
    finish_steps,
    in_child,
    parser,
    peak_bytes,
    resident_bytes,
)
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import DistillationConfig, DistillationTrainer, GRPOConfig, GRPOTrainer
from trl.experimental.gkd import GKDConfig, GKDTrainer
from trl.experimental.sdft import SDFTConfig, SDFTTrainer

KINDS = ("gkd", "distillation", "sdft", "grpo")
GROUP = 8


class StepClock(TrainerCallback):
    """Times and phases of each step."""

    def __init__(self, clock: PhaseClock) -> None:
        """Nothing has been measured."""
        self.clock, self.times, self.laps = clock, [], []

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start the step's clock."""
        self.clock.lap()
        self.watch = Stopwatch()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Keep the step's times."""
        self.times.append(self.watch.read())
        self.laps.append(self.clock.lap())


def configured(config: type, **values: Any) -> Any:
    """A trainer's configuration from those values that it knows."""
    known = inspect.signature(config.__init__).parameters
    return config(**{name: value for name, value in values.items() if name in known})


def trainer(kind: str, model: Path, sizes: Any, out: str) -> Any:
    """TRL's trainer of a kind: on-policy, forward KL or JSD as it comes, fp32, AdamW."""
    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    load = partial(
        AutoModelForCausalLM.from_pretrained, model, dtype=torch.float32, trust_remote_code=False
    )
    student = load()
    rows = max(64, sizes.problems * (sizes.steps + sizes.warmup + 2))
    texts = synthetic.texts(rows, sizes.prompt)
    given = synthetic.texts(rows, sizes.privileged + synthetic.TEMPLATE_TOKENS, seed=1)
    prompts = [[{"role": "user", "content": text}] for text in texts]
    common = dict(
        output_dir=out,
        max_steps=sizes.steps + sizes.warmup,
        per_device_train_batch_size=sizes.problems,
        learning_rate=1e-5,
        logging_steps=10**6,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        gradient_checkpointing=False,
        bf16=False,
        disable_tqdm=True,
        seed=0,
        lmbda=1.0,
        beta=0.5,
        temperature=1.0,
        max_new_tokens=sizes.new,
        max_completion_length=sizes.new,
        max_prompt_length=256,
        max_length=1024,
        use_vllm=False,
    )
    ours = dict(processing_class=tokenizer)
    if kind == "gkd":
        answers = [[{"role": "assistant", "content": "a" * sizes.new}]] * rows
        data = [{"messages": p + a} for p, a in zip(prompts, answers, strict=True)]
        args = configured(GKDConfig, **common)
        return GKDTrainer(
            model=student,
            teacher_model=noised(load()),
            args=args,
            train_dataset=Dataset.from_list(data),
            **ours,
        )
    if kind == "distillation":
        args = configured(DistillationConfig, **common)
        data = Dataset.from_list([{"prompt": prompt} for prompt in prompts])
        return DistillationTrainer(
            model=student, teacher_model=noised(load()), args=args, train_dataset=data, **ours
        )
    if kind == "sdft":
        data = [
            {"prompt": prompt, "privileged_context": more}
            for prompt, more in zip(prompts, given, strict=True)
        ]
        args = configured(SDFTConfig, **{**common, "num_generations": 1})
        return SDFTTrainer(model=student, args=args, train_dataset=Dataset.from_list(data), **ours)
    assert kind == "grpo", f"unknown kind {kind!r}; allowed are {', '.join(KINDS)}"
    batch = {"per_device_train_batch_size": sizes.problems * GROUP, "beta": 0.0}
    args = configured(GRPOConfig, **{**common, **batch, "num_generations": GROUP})
    data = Dataset.from_list([{"prompt": prompt} for prompt in prompts])
    return GRPOTrainer(
        model=student, reward_funcs=digits_reward, args=args, train_dataset=data, **ours
    )


def noised(model: torch.nn.Module) -> torch.nn.Module:
    """A teacher that is not the student: a little noise on its weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


def digits_reward(completions: list[Any], **kwargs: Any) -> list[float]:
    """How many digits a completion has."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [float(sum(map(str.isdigit, text))) for text in texts]


def never_end(model: Any) -> None:
    """Let `generate` give completions of full length, without the tokens that end or fill one."""
    generate, beyond = model.generate, model.config.vocab_size

    def full_length(*args: Any, **kwargs: Any) -> torch.Tensor:
        kwargs["eos_token_id"] = beyond
        output = generate(*args, **kwargs)
        ids = output if isinstance(output, torch.Tensor) else output.sequences
        asked = kwargs.get("input_ids", kwargs.get("inputs", args[0] if args else None))
        new = ids[:, asked.shape[1] :]
        special = torch.tensor([s for s in {synthetic.PAD, synthetic.EOS, *ends(model)}])
        new.masked_fill_(torch.isin(new, special), synthetic.PLAIN)
        return output

    model.generate = full_length


def ends(model: Any) -> list[int]:
    """The ids that end or fill a completion of this model."""
    config = model.generation_config
    both = (config.eos_token_id, config.pad_token_id)
    return [
        i for each in both if each is not None for i in ([each] if isinstance(each, int) else each)
    ]


def phases_of(made: Any) -> PhaseClock:
    """A clock over a trainer's parts."""
    clock, model = PhaseClock(), made.model
    never_end(model)
    clock.wrap(model, "generate", "generate")

    def student_or_teacher() -> str:
        return "student" if torch.is_grad_enabled() else "teacher"

    passes = "rest loss"
    for owner in (model, model.model):
        clock.wrap(owner, "forward", student_or_teacher, only_in=passes)
    teacher = getattr(made, "teacher_model", None)
    if teacher is not None and teacher is not model:
        for owner in (teacher, teacher.model):
            clock.wrap(owner, "forward", "teacher", only_in=passes)
    clock.wrap(made, "compute_loss", "loss", only_in="rest")
    clock.wrap(made.accelerator, "backward", "backward")
    create = made.create_optimizer

    def create_and_wrap(*args: Any, **kwargs: Any) -> Any:
        optimiser = create(*args, **kwargs)
        clock.wrap(made.optimizer, "step", "optimiser")
        return optimiser

    made.create_optimizer = create_and_wrap
    return clock


def measure(name: str, kind: str, sizes: Any) -> dict[str, Any]:
    """Times of a few steps after the first ones, their phases, and peak memory."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(name)
        if name in synthetic.SHAPES:
            folder = synthetic.save(synthetic.SHAPES[name], Path(scratch) / "model")
        made = trainer(kind, folder, sizes, f"{scratch}/out")
        before = resident_bytes()
        steps = StepClock(phases_of(made))
        made.add_callback(steps)
        made.train()
    return {
        "kind": kind,
        "times": steps.times[sizes.warmup :],
        "phases": steps.laps[sizes.warmup :],
        "first_step": steps.times[0],
        "peak_bytes": peak_bytes(),
        "start_bytes": before,
        "parameters": sum(p.numel() for p in made.model.parameters()),
    }


def main() -> None:
    """Measure the kinds one after another."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=["0.8M"], help="sizes, or model folders")
    options.add_argument("--kinds", nargs="+", default=list(KINDS))
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--warmup", type=int, default=2)
    options.add_argument("--problems", type=int, default=8)
    options.add_argument("--prompt", type=int, default=32)
    options.add_argument("--privileged", type=int, default=40)
    options.add_argument("--new", type=int, default=128)
    given = options.parse_args()
    if given.smoke:
        given.models, given.problems, given.new = ["tiny"], 2, 4
        given.steps, given.warmup = 1, 0
    runs = [
        {"model": Path(name).name, **in_child(partial(measure, name, kind, given))}
        for name, kind in itertools.product(given.models, given.kinds)
    ]
    finish_steps("trl", runs, given.out)


if __name__ == "__main__":
    main()
