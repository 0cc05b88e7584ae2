"""Any distillation method of geosd in a training loop of your own, with torch alone.

    objective = build("tropd", agreement_threshold=0.5)
    loss = objective_loss(objective, student, teacher, anchor, tokens, mask)
    loss.backward()

Student and teacher are tables of next-token logits; the teacher makes the student's third choice
its first. The student samples its own responses at every step and is trained on them.

Its sizes and its rate are those of the toy, not the paper's. Seconds on a laptop.

    python examples/objective_any_loop.py
"""

from __future__ import annotations

import torch
from torch import Tensor

from geosd.geometry import overlap, union_support
from geosd.objectives.objective import Objective, ObjectiveBatch, ObjectiveStates, build_objective
from geosd.objectives.reduce import mean_loss

METHODS = ("fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd")
TOKENS, ROWS, LENGTH, STEPS, TOP_K = 40, 16, 12, 60, 16


def objective_loss(
    objective: Objective,
    student: Tensor,
    teacher: Tensor,
    anchor: Tensor,
    tokens: Tensor,
    mask: Tensor,
) -> Tensor:
    """The loss of a batch of the student's own responses, a scalar.

    Shapes: B responses, T tokens, V vocabulary.

    Args:
        objective: A method that trains on one response a problem and needs no rewards.
        student: [B, T, V] logits that predict each token, with gradient.
        teacher: [B, T, V] of the teacher, at the same tokens.
        anchor: [B, T, V] of the anchor; methods without a proximal term do not read it.
        tokens: [B, T] long, the sampled tokens.
        mask: [B, T], true where a response token is predicted.
    """
    at = mask.bool()
    logits = {"student": student[at], "teacher": teacher[at].detach()}
    if "anchor" in objective.needs:
        logits["anchor"] = anchor[at].detach()
    support = union_support(list(logits.values()), TOP_K)
    log = {name: support.restrict(each) for name, each in logits.items()}
    sampled = {
        name: logits[name].log_softmax(-1).gather(-1, tokens[at][:, None])[:, 0]
        for name in ("student", "teacher")
    }
    states = ObjectiveStates(
        log["student"],
        log["teacher"],
        log.get("anchor"),
        token_log_p=sampled["student"],
        token_log_q=sampled["teacher"],
        token_log_ref=None,
    )
    sequence = at.nonzero()[:, 0]
    batch = ObjectiveBatch(sequence, reward=None, vocabulary=student.shape[-1])
    terms = objective.combine(objective.per_position(states), batch)
    return mean_loss(terms.loss, terms.weight, sequence)


def sample(table: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Responses of a table [V, V]: the token before each one and the tokens, both [B, T]."""
    tokens = [torch.randint(TOKENS, (ROWS,), generator=generator)]
    for _ in range(LENGTH):
        probabilities = table[tokens[-1]].softmax(-1)
        tokens.append(torch.multinomial(probabilities, 1, generator=generator)[:, 0])
    return torch.stack(tokens[:-1], 1), torch.stack(tokens[1:], 1)


def train(method: str) -> tuple[float, float]:
    """The mean overlap sum_i sqrt(p_i q_i) with the teacher before and after training."""
    generator = torch.Generator().manual_seed(0)
    student = (2 * torch.randn(TOKENS, TOKENS, generator=generator)).requires_grad_()
    with torch.no_grad():
        third = student.topk(3).indices[:, 2:]
        teacher = student.scatter_add(1, third, torch.full_like(third, 4.0, dtype=student.dtype))
        anchor = student.clone()
    optimizer, objective = torch.optim.Adam([student], lr=0.05), build_objective(method)
    mask = torch.ones(ROWS, LENGTH)

    def mean_overlap() -> float:
        with torch.no_grad():
            return overlap(student.log_softmax(-1), teacher.log_softmax(-1)).mean().item()

    before = mean_overlap()
    for _ in range(STEPS):
        previous, tokens = sample(student.detach(), generator)
        models = (table[previous] for table in (student, teacher, anchor))
        optimizer.zero_grad()
        objective_loss(objective, *models, tokens, mask).backward()
        optimizer.step()
    return before, mean_overlap()


def main() -> None:
    for method in METHODS:
        before, after = train(method)
        print(f"{method:7} overlap with the teacher {before:.3f} -> {after:.3f}")
        assert after > before + 0.05, f"{method} did not approach its teacher"


if __name__ == "__main__":
    main()
