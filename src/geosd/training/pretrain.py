"""Make a base model of a miniature world: random weights, pretrained on the world's documents.

B = documents of a batch, T = tokens of the longest, N = supervised positions.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from geosd.models.forward import last_hidden_states
from geosd.models.load_and_save import load_model
from geosd.models.output_head import head_logits
from geosd.models.tiny_models import build_tiny_model
from geosd.preemption import PreemptionError
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import Corpus, CorpusDocument, SearchCorpus, WideCorpus
from geosd.seeds import seed_of
from geosd.training.resume_state import ResumeState

CORPORA: dict[str, type[Corpus]] = {"search": SearchCorpus, "search-wide": WideCorpus}
"""The worlds' documents, by the names that `base.pretraining.corpus` allows."""

BUCKET = 8  # batches whose documents are drawn together and then sorted by length
REST = 0.5  # AdamW's share of the learning rate
NEAR = 0.3  # of the rows' spread, by which a new word starts apart from the one that it is like
IGNORED = -100  # cross_entropy's own mark of a position without a target


@dataclass(frozen=True)
class PretrainArguments:
    """Settings of the pretraining of a miniature base model.

    The matrices of the transformer blocks take Muon, all other tensors AdamW at `REST` of its rate:
    from random weights, Muon comes to the same loss in fewer steps (docs/decisions.md). The peak
    rate is on the scale of AdamW's. It rises over the steps of `warmup`, and falls to zero over the
    last fraction `decay` of the steps. `clip` bounds the norm of the whole gradient.
    """

    steps: int
    documents: int = 64
    learning_rate: float = 1e-2
    warmup: int = 50
    decay: float = 0.5
    weight_decay: float = 0.01
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with."""
        for name in ("steps", "documents"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; allowed are integers from 1.\nHint: the"
                    " miniature's base models take 4,500 steps or more of 64 documents."
                )

    def factor(self, step: int) -> float:
        """Share of the peak learning rates at a step of the pretraining, counted from 0."""
        rise = (step + 1) / max(1, self.warmup)
        fall = (self.steps - step) / max(1.0, self.decay * self.steps)
        return min(1.0, rise, fall)


def pretrain_base_model(
    recipe: Mapping[str, Any],
    resume: ResumeState,
    progress: str | None = None,
    stop_requested: Callable[[], bool] | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[float]]:
    """A base model in float32 by `base.pretraining`, its tokenizer, and `pretrain`'s losses.

    PreemptionError where `stop_requested` ended the pretraining; see `pretrain`.
    """
    values = dict(recipe)
    architecture, seed = values.pop("architecture"), values.pop("seed")
    corpus = CORPORA[values.pop("corpus")]()
    tokenizer = build_miniature_tokenizer(corpus.vocabulary)
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    model = build_tiny_model(architecture, len(tokenizer), pad, end, seed=seed_of(seed, "weights"))
    if start := values.pop("start", None):
        _take_over(Path(start) / str(seed), model, tokenizer, corpus.like)
    args = PretrainArguments(**values)
    losses = pretrain(
        model,
        tokenizer,
        corpus,
        args,
        seed,
        resume,
        progress=progress,
        stop_requested=stop_requested,
    )
    return model, tokenizer, losses


def _take_over(
    folder: Path, model: nn.Module, tokenizer: PreTrainedTokenizerBase, like: Callable[[str], str]
) -> None:
    """Give a model the weights of a base model that knows fewer words.

    A word that is new to it starts near the one that it is `like`: at its row, and a third of the
    rows' spread in random directions.
    """
    other, known = load_model(folder)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    places, draw = known.get_vocab(), torch.Generator().manual_seed(0)
    new = torch.tensor([[word not in places] for word in words])
    rows = [places[word if word in places else like(word)] for word in words]
    for own, taken in zip(model.parameters(), other.parameters(), strict=True):
        if own.shape != taken.shape:
            taken = taken[rows] + new * NEAR * taken.std() * torch.randn(own.shape, generator=draw)
        own.data.copy_(taken)


def pretrain(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    corpus: Corpus,
    args: PretrainArguments,
    seed: int,
    resume: ResumeState | None = None,
    save_every: int = 100,
    progress: str | None = None,
    stop_requested: Callable[[], bool] | None = None,
) -> list[float]:
    """Pretrain a base model in place, on documents drawn from the seed.

    A run that was killed continues from its last saved step, of which `resume` has one every
    `save_every`, and ends with the same bits. A progress bar says `progress`; None shows none.
    `stop_requested`, such as that of `catch_sigterm`, is asked after each step; true ends the run.

    Returns:
        The loss of each step in nats a token: the mean over the supervised tokens of its batch.

    Raises:
        PreemptionError: `stop_requested` said so; the state of the run is saved in `resume`.
    """
    optimizers = _optimizers(model, args)
    losses: list[float] = []
    saved = resume.load(args.steps) if resume is not None else None
    if saved is not None:
        _, state = saved
        losses = state["losses"]
        model.load_state_dict(state["model"])
        for optimizer, optimizer_state in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(optimizer_state)
    model.eval()  # no dropout, whatever the configuration that training starts from says
    batches: Sequence[list[CorpusDocument]] = ()
    shown = {"desc": progress, "mininterval": 2, "disable": progress is None}
    bar = tqdm(range(len(losses), args.steps), initial=len(losses), total=args.steps, **shown)
    for step in bar:
        place = step % BUCKET
        if place == 0 or not batches:
            batches = draw_pretrain_batches(corpus, args.documents, seed, step // BUCKET)
        losses.append(_step(model, optimizers, tokenizer, batches[place], args, step))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
        done = step + 1
        must_stop = done < args.steps and stop_requested is not None and stop_requested()
        if resume is not None and (done % save_every == 0 or must_stop):
            states = [optimizer.state_dict() for optimizer in optimizers]
            state = {"losses": losses, "model": model.state_dict(), "optimizers": states}
            resume.save(done, state)
        if must_stop:
            raise PreemptionError(
                f"asked to stop after {done} steps of {args.steps}; start again to go on from there"
            )
    return losses


def draw_pretrain_batches(
    corpus: Corpus, documents: int, seed: int, bucket: int
) -> list[list[CorpusDocument]]:
    """A bucket's batches, each of documents of like length; a step needs none before it."""
    draw = random.Random(seed_of(seed, "documents", bucket))
    drawn = [corpus.draw_document(draw) for _ in range(BUCKET * documents)]
    drawn.sort(key=lambda document: len(document.prompt) + len(document.response))
    batches = [drawn[at : at + documents] for at in range(0, len(drawn), documents)]
    draw.shuffle(batches)
    return batches


def pretrain_batch(
    tokenizer: PreTrainedTokenizerBase, documents: Iterable[CorpusDocument]
) -> tuple[Tensor, Tensor]:
    """A batch of pretraining documents as right-padded tensors.

    Targets are the response and a shown reference: it is a solution of the same question, and its
    lesson costs no further forward pass. Questions are random, so there is nothing to learn in
    them. What a prompt holds behind `S:`, an attempt at a solution, is context alone.

    Returns:
        ids_BT and target_BT: the next token, or `IGNORED` where none is supervised.
    """
    documents = list(documents)
    prompts = tokenizer([d.prompt for d in documents], add_special_tokens=False).input_ids
    responses = tokenizer([d.response for d in documents], add_special_tokens=False).input_ids
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    reference, solution = tokenizer.convert_tokens_to_ids(["R:", "S:"])
    rows = [[*p, *r, end] for p, r in zip(prompts, responses, strict=True)]
    width = max(map(len, rows))
    ids_BT = torch.full((len(rows), width), pad)
    target_BT = torch.full((len(rows), width), IGNORED)
    for place, row in enumerate(rows):
        question_end = next(at for at, token in enumerate(row) if token in (reference, solution))
        ids_BT[place, : len(row)] = torch.tensor(row)
        target_BT[place, question_end : len(row) - 1] = torch.tensor(row[question_end + 1 :])
        target_BT[place, row.index(solution) : len(prompts[place]) - 1] = IGNORED
        if not documents[place].ends:
            target_BT[place, len(row) - 2] = IGNORED
    return ids_BT, target_BT


def _step(
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[CorpusDocument],
    args: PretrainArguments,
    step: int,
) -> float:
    ids_BT, target_BT = pretrain_batch(tokenizer, documents)
    supervised_BT = target_BT != IGNORED
    logits_NV = head_logits(model, last_hidden_states(model, ids_BT)[supervised_BT])
    loss = cross_entropy(logits_NV, target_BT[supervised_BT])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * args.factor(step)
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def _optimizers(model: nn.Module, args: PretrainArguments) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices, AdamW for everything else."""
    matrices, rest = [], []
    for name, parameter in model.named_parameters():
        (matrices if parameter.ndim == 2 and ".layers." in name else rest).append(parameter)
    muon = torch.optim.Muon(
        [{"params": matrices, "peak": args.learning_rate}],
        weight_decay=args.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    adamw = torch.optim.AdamW(
        [{"params": rest, "peak": REST * args.learning_rate}], betas=(0.9, 0.98), weight_decay=0.0
    )
    return [muon, adamw]  # each step sets the rate, a share of "peak"
