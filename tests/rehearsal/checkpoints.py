"""Stand-ins for the paper's seven released checkpoints: narrow, two layers, right at times.

    python tests/rehearsal/checkpoints.py --shared DATA --problems FOLDER --out FOLDER MODEL...

Configuration, vocabulary, tokenizer and chat template are the published ones. Random weights would
solve nothing, and without a verified solution nothing is trained: so each model learns by heart one
right and one wrong answer to each problem, and gives either half of the time.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from paper_models import PUBLISHED, load_narrow
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import save_model
from geosd.problems.encoding import encoding_of
from geosd.problems.records import Problem

NARROWER, FEWER_HEADS, HEAD_WIDTH = 64, 4, 32  # no narrower head has a kernel of vLLM's on a CPU
STEPS, LEARNING_RATE = 100, 2e-2


def documents(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    problems: list[Problem],
    thinking: bool = True,
) -> list[tuple[list[int], list[int]]]:
    """Prompt and response of each problem, once with its answer and once with another problem's."""
    recipe = {"source": "dapo-math", "thinking": thinking}
    encoding = encoding_of(recipe, tokenizer, model.generation_config)
    closing = "</think>" * encoding.opens_thought  # an answer inside a thought is none
    answers = [problem.answer for problem in problems]
    shifted = [*answers[1:], answers[0]]
    return [
        (encoding.student(problem), encoding.response(closing + f"\\boxed{{{answer}}}"))
        for problem, right, wrong in zip(problems, answers, shifted, strict=True)
        for answer in (right, wrong)
    ]


def batch(pairs: list[tuple[list[int], list[int]]], used: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Joined tokens as places in `used`, and the rows and positions that predict a response."""
    rows = [torch.searchsorted(used, torch.tensor(sum(pair, []))) for pair in pairs]
    lengths = [(len(prompt), len(response)) for prompt, response in pairs]
    row = torch.cat([torch.full((n,), i) for i, (_, n) in enumerate(lengths)])
    place = torch.cat([torch.arange(start - 1, start + n - 1) for start, n in lengths])
    # Causal: what pads on the right is not seen.
    return pad_sequence(rows, batch_first=True), row, place


def learn(model: PreTrainedModel, pairs: list[tuple[list[int], list[int]]]) -> float:
    """Fit the responses to their prompts; returns the last loss, in nats a token.

    Only the tokens that occur are trained. Of each of the others the logit counts as 0, which
    random weights hardly differ from: the softmax costs a hundredth of the whole one.
    """
    used = torch.tensor([token for pair in pairs for ids in pair for token in ids]).unique()
    batches = [
        batch(pairs[first::2], used) for first in (0, 1)
    ]  # the right answers, the wrong ones
    whole = [model.get_input_embeddings().weight]
    if not model.config.tie_word_embeddings:
        whole.append(model.get_output_embeddings().weight)
    parts = [nn.Parameter(weight.data[used]) for weight in whole]
    others = math.log(model.config.vocab_size - len(used))
    trained = [*parts, *(p for p in model.parameters() if all(p is not w for w in whole))]
    optimizer = torch.optim.Adam(trained, LEARNING_RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / STEPS)
        ids, row, place = batches[step % 2]
        hidden = model.model(inputs_embeds=parts[0][ids]).last_hidden_state[row, place]
        logits = pad(hidden @ parts[-1].T, (0, 1), value=others)
        loss = cross_entropy(logits, ids[row, place + 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for weight, part in zip(whole, parts, strict=True):
        weight.data[used] = part.data
    return loss.item()


def main() -> None:
    """Write the checkpoint of each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, required=True, help="the shared data")
    parser.add_argument("--problems", type=Path, required=True, help="folder of the step `data`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("models", nargs="+", choices=PUBLISHED)
    given = parser.parse_args()
    torch.set_num_threads(1)
    problems = [
        problem
        for name in ("train", "test")
        for problem in read_jsonl(given.problems / f"{name}.jsonl", Problem)
    ]
    for name in given.models:
        model, tokenizer = load_narrow(given.shared, name, NARROWER, FEWER_HEADS, HEAD_WIDTH)
        loss = learn(model, documents(model, tokenizer, problems))
        save_model(model.bfloat16(), tokenizer, given.out / name)
        print(f"{name}: {model.num_parameters():,} parameters, {loss:.2f} nats a token", flush=True)


if __name__ == "__main__":
    main()
