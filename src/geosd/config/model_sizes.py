"""Models of params.yaml whose sizes are known before they are there; no torch is imported."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from geosd.config.study import Study
from geosd.models.architectures import POSITIONS, TINY_MODELS, published_architectures
from geosd.models.context_length import check_context


@dataclass(frozen=True)
class ModelSize:
    """The sizes of a model that settings are held to; None where one is not known."""

    hidden: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    """Most tokens of a sequence."""


def model_size(name: str, base: Mapping[str, Any]) -> ModelSize:
    """The size of a model with a section `base`, as far as it is known beforehand."""
    if base["source"] == "pretrained":
        _, hidden, *_ = TINY_MODELS[base["pretraining"]["architecture"]]
        return ModelSize(hidden, None, POSITIONS)
    checkpoint = base["checkpoint"]
    if checkpoint and checkpoint.get("folder"):
        return _size_of_checkpoint(Path(checkpoint["folder"]).absolute())
    published = published_architectures().get(name)
    if published:
        return ModelSize(published.hidden, published.vocabulary, published.context)
    return ModelSize()


@cache
def _size_of_checkpoint(folder: Path) -> ModelSize:
    """The size that config.json of a checkpoint, or of draw 0 of a shipped one, says.

    The folder is absolute: what is kept would hold in every working directory.
    """
    for file in (folder / "config.json", folder / "0/config.json"):
        if file.is_file():
            try:
                config = json.loads(file.read_text(encoding="utf-8"))
                context = config.get("max_position_embeddings")
                return ModelSize(config["hidden_size"], config["vocab_size"], context)
            except (ValueError, LookupError, TypeError, AttributeError):
                break  # the step `base` says what is wrong with a checkpoint
    return ModelSize()


def context_beyond_model_size(study: Study, model: str) -> dict[str, int]:
    """Room for a question and its template in a model's context: reader -> tokens.

    The teacher also reads a solution, which may be as long as the pool's cap. Without entries where
    the context is not known before the base model is there; ContextError if a reader has no room.
    """
    context = model_size(model, study.section("base", model)).context
    sections = [study.section("pool", model), study.section("evaluation", model)]
    pool, evaluation = (section["response_tokens"] for section in sections)
    trained = max((study.training(model, v)["response_tokens"] for v in study.trained), default=0)
    caps = {"student": (0, max(pool, evaluation, trained)), "teacher": (pool, trained)}
    if not isinstance(context, int):
        return {}
    for reader, (solution, cap) in caps.items():
        check_context(context, solution + 1, cap, f"the {reader} of {model}")
    return {reader: context - sum(parts) for reader, parts in caps.items()}
