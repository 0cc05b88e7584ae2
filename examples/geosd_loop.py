"""GeoSD from top to bottom, on torch, transformers, and geosd's geometry and K-FAC alone.

    python examples/geosd_loop.py base_models/mini-qwen3/0 examples/search_problems.jsonl 10

A line of the problems has a "question" and a verified "solution". In every step the student answers
eight problems. The same model is the teacher: it reads a solution, too, and predicts the tokens of
the student's responses. The loss pulls the student toward the teacher (Hellinger) and holds it near
a recent checkpoint of itself, the anchor (squared Fisher-Rao). K-FAC preconditions the gradient;
AdamW steps. tests/training/test_geosd_loop.py holds loss and gradient to those of the package.

The last word is the number of steps, 100 where it is left out; ten take less than a CPU minute.

N = response positions of a step, V = vocabulary, T = tokens of a padded row.
"""

import copy
import json
import sys

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from geosd.geometry import fisher_rao_squared, hellinger, overlap, union_support
from geosd.optim.kfac import KFAC

STUDENT, TEACHER = "Q: {question} S:", "Q: {question} R: {solution} S:"  # this model's prompts
# The paper's protocol:
PROBLEMS, WARMUP, BETAS, WEIGHT_DECAY, DRIFT_PENALTY, DAMPING = 8, 20, (0.9, 0.95), 0.0, 1.0, 1e-3
# Study quick's, of so small a model. The paper's are 625, 4096, 1024, 1e-6, 64, 16 and 1/8.
STEPS, RESPONSE_TOKENS, TOP_K, LEARNING_RATE, ANCHOR_EVERY = 100, 42, 16, 3e-5, 10
BLOCKS, SUBSAMPLE = 4, 1.0


@torch.no_grad()
def sample(model, prompts: list[list[int]], pad_id: int) -> list[list[int]]:
    """One response to each prompt at temperature 1; its end token belongs to it."""
    how = dict(do_sample=True, top_k=0, max_new_tokens=RESPONSE_TOKENS, pad_token_id=pad_id)
    rows = (torch.tensor([prompt], device=model.device) for prompt in prompts)
    texts = (model.generate(row, attention_mask=torch.ones_like(row), **how) for row in rows)
    return [text[0, len(prompt) :].tolist() for text, prompt in zip(texts, prompts, strict=True)]


def padded(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids [B, T], padded on the right, and the mask of what is no padding."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [pad_id] * (width - len(row)) for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, torch.arange(width, device=device) < lengths[:, None]


def response_logits(model, ids: Tensor, prompts, responses) -> Tensor:
    """Logits [N, V] that predict each response token, row by row."""
    spans = ((len(p) - 1, len(p) - 1 + len(r)) for p, r in zip(prompts, responses, strict=True))
    rows = zip(model(ids).logits, spans, strict=True)
    return torch.cat([row[first:last] for row, (first, last) in rows])


def backward(student, anchor, kfac: KFAC, prompts, teacher_prompts, responses, pad_id: int):
    """Differentiate GeoSD's loss; the loss, and the student's overlap with the teacher.

    p is the student, q the teacher, c the anchor, on the union of their top-K tokens; the mean is
    over the tokens of a response, then over responses (paper, eqs. distillation-loss, full-loss):

        L = mean[ D_H(p, q) + lambda d_FR(p, c)^2 ],    D_H = 1 - sum sqrt(p q),
        d_FR = 2 arccos sum sqrt(p c)
    """
    joined = [p + r for p, r in zip(prompts, responses, strict=True)]
    ids, mask = padded(joined, pad_id, student.device)
    joined = [p + r for p, r in zip(teacher_prompts, responses, strict=True)]
    teacher_ids, _ = padded(joined, pad_id, student.device)
    with torch.no_grad():  # the references are constants of the loss
        teacher = response_logits(student, teacher_ids, teacher_prompts, responses)
        recent = response_logits(anchor, ids, prompts, responses)
    length_B = torch.tensor([len(response) for response in responses], device=student.device)
    row_N = torch.arange(len(responses), device=student.device).repeat_interleave(length_B)
    with kfac.observe(mask, loss_terms=len(responses) * length_B):
        logits = response_logits(student, ids, prompts, responses)
        support = union_support([logits, teacher, recent], TOP_K)
        p, q, c = (support.restrict(each) for each in (logits, teacher, recent))
        loss_N = hellinger(p, q) + DRIFT_PENALTY * fisher_rao_squared(p, c)
        loss = (loss_N / length_B[row_N]).sum() / len(responses)
        loss.backward()
    return loss.item(), overlap(p, q).mean().item()


def main(model: str, file: str, steps: str | int = STEPS) -> None:
    """Train MODEL on the problems of FILE for STEPS steps, and print the course of it."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(model)
    student = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    student.to("cuda" if torch.cuda.is_available() else "cpu")
    with open(file, encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    kfac = KFAC(student, blocks=BLOCKS, damping=DAMPING, subsample=SUBSAMPLE)
    optimizer = torch.optim.AdamW(student.parameters(), betas=BETAS, weight_decay=WEIGHT_DECAY)
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    for step in range(int(steps)):
        if step % ANCHOR_EVERY == 0:
            anchor = copy.deepcopy(student).requires_grad_(False)
        batch = [problems[(step * PROBLEMS + i) % len(problems)] for i in range(PROBLEMS)]
        prompts, teacher_prompts = (
            tokenizer([form.format(**each) for each in batch], add_special_tokens=False).input_ids
            for form in (STUDENT, TEACHER)
        )
        responses = sample(student, prompts, pad_id)
        loss, shared = backward(student, anchor, kfac, prompts, teacher_prompts, responses, pad_id)
        kfac.step()  # ~dW = (G + sqrt(gamma) I)^-1 dW (A + sqrt(gamma) I)^-1
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / WARMUP)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step:3d}   loss {loss:.4f}   overlap with the teacher {shared:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
