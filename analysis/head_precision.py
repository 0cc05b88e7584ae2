"""How much of GeoSD's proximal term is rounding in bfloat16: of the head's logits, of the body.

    python analysis/head_precision.py results/base/smollm2-135m-*      # 80 CPU seconds

d_FR and the gradient of d_FR^2 in the student's logits, on the union of top-K = 128: from logits in
bfloat16, from those that a training reads, from a head in float64 on the same hidden states, and
with bodies in float32. Anchors: equal weights in another order of sums, weights moved at random.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from geosd.geometry import fisher_rao, fisher_rao_squared, union_support
from geosd.models.load_and_save import load_model
from geosd.problems.encoding import Encoding
from geosd.problems.sources import get_data_source
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.training.packing import Packed, pack
from geosd.training.policy import frozen_copy, policy_response_logits

SIZES = {"select_train": 0, "select_validation": 0, "test_id": 0, "test_per_benchmark": 0}
MOVES = (1e-3, 3e-3, 1e-2, 3e-2)  # standard deviations, as shares of that of each tensor


def compared(student: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor]:
    """d_FR at each position [N], and the gradient of its square in the student's logits [N, V]."""
    student = student.detach().requires_grad_()
    support = union_support([student.detach(), anchor], 128)
    log_p, log_anchor = support.restrict(student), support.restrict(anchor)
    (gradient,) = torch.autograd.grad(fisher_rao_squared(log_p, log_anchor).sum(), student)
    return fisher_rao(log_p, log_anchor).detach(), gradient.double()


@torch.no_grad()
def logits(model: nn.Module, packed: Packed, every_position: bool = True) -> list[Tensor]:
    """Logits [N, V] of the response tokens: in bfloat16, of a training, and in float64."""
    chunked = policy_response_logits(model, packed, every_position=every_position)
    weight, hidden = model.lm_head.weight, chunked.hidden
    return [hidden @ weight.T, chunked.logits(slice(None)), hidden.double() @ weight.double().T]


def main(folder: Path, problems: int = 8, tokens: int = 48) -> None:
    """Print a row for each anchor: mean distances, then cosines with their 10 % quantiles."""
    torch.manual_seed(0)
    master, packed = sampled(folder, problems, tokens)
    half = frozen_copy(master, torch.bfloat16)
    student = four_logits(half, master, packed)
    print(
        "anchor; d_FR: bfloat16, training, float64, whole float32; cosines: bfloat16 and training"
    )
    print("with float64, training with whole float32")
    once = [*logits(half, packed, every_position=False), student[3]]
    anchors = {"prefix run once": once}
    for move in MOVES:
        moved = frozen_copy(master)
        for weight in moved.parameters():
            weight.data += move * weight.std() * torch.randn_like(weight)
        rounded = frozen_copy(moved, torch.bfloat16)
        anchors[f"moved by {move:g}"] = four_logits(rounded, moved, packed)
    for name, anchor in anchors.items():
        found = [compared(own, its) for own, its in zip(student, anchor, strict=True)]
        distances = [f"{distance.mean():.4f}" for distance, _ in found]
        rounded, training, exact, whole = (gradient for _, gradient in found)
        angles = [cosine(rounded, exact), cosine(training, exact), cosine(training, whole)]
        print(name, *distances, *angles)


def sampled(folder: Path, problems: int, tokens: int) -> tuple[nn.Module, Packed]:
    """The model of a folder, and responses that it draws on training problems."""
    master, tokenizer = load_model(folder)
    source = get_data_source("word-problems")
    encoding = Encoding(tokenizer, source.prompts(tokenizer, thinking=False))
    asked = source.prepare({"seed": 0, "train": problems, **SIZES}).train
    prompts = [encoding.student(problem) for problem in asked]
    sampler = TransformersSampler(master, encoding.end_ids, encoding.pad_id)
    responses = sampler.sample(prompts, SamplingParams(1.0, 1.0, tokens), seed=0)
    packed = pack(prompts, [list(response.ids) for response in responses], encoding.pad_id)
    return master, packed


def four_logits(half: nn.Module, whole: nn.Module, packed: Packed) -> list[Tensor]:
    """`logits` of a model in bfloat16, then those of a training from the model in float32."""
    _, of_training, _ = logits(whole, packed)
    return [*logits(half, packed), of_training]


def cosine(a: Tensor, b: Tensor) -> str:
    """Mean and 10 % quantile over positions of the cosine of two gradients [N, V]."""
    each = torch.cosine_similarity(a, b, dim=-1)
    return f"{each.mean():.4f} ({each.quantile(0.1):.4f})"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
