"""Make a base model of a miniature world: random weights, pretrained on the world's documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from geosd.models.tiny_architectures import build
from geosd.problems.miniature.tokenizer import build_tokenizer
from geosd.problems.pretraining_corpus import Corpus
from geosd.problems.search.documents import SearchCorpus
from geosd.seeds import seed_of
from geosd.training.pretrain import PretrainingArguments, pretrain
from geosd.training.resume_state import ResumeState

CORPORA: dict[str, type[Corpus]] = {"search": SearchCorpus}
"""The worlds' documents, by the names that `base.pretraining.corpus` allows."""


def pretrain_base_model(
    recipe: Mapping[str, Any], resume: ResumeState, progress: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[float]]:
    """Pretrain a base model of a miniature world.

    Args:
        recipe: The plain values of `base.pretraining`: `architecture`, `corpus`, `seed`, and the
            arguments of `PretrainingArguments`. The seed is that of weights and documents.
        resume: Where the state of a killed pretraining lies.
        progress: What the progress bar says; None shows none.

    Returns:
        The model in float32, its tokenizer, and the loss of each step in nats a token.
    """
    values = dict(recipe)
    architecture, seed = values.pop("architecture"), values.pop("seed")
    corpus = CORPORA[values.pop("corpus")]()
    tokenizer = build_tokenizer(corpus.vocabulary)
    model = build(
        architecture,
        len(tokenizer),
        tokenizer.pad_token_id,
        tokenizer.eos_token_id,
        seed=seed_of(seed, "weights"),
    )
    args = PretrainingArguments(**values)
    losses = pretrain(model, tokenizer, corpus, args, seed, resume, progress=progress)
    return model, tokenizer, losses
