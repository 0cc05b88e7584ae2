"""What a world's pretraining documents are: a vocabulary, and a draw of documents."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Document:
    """A pretraining document: a prompt and what follows it.

    Attributes:
        prompt: A question, with or without a reference, and the beginning of a solution if any.
        response: The solution, or the rest of it.
        ends: Whether the end of the response is learned too.
    """

    prompt: str
    response: str
    ends: bool = True


class Corpus(Protocol):
    """Interface of the documents that a base model of one world is pretrained on."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """All words of the world, each with one token, in the order of their ids."""
        ...

    def draw_document(self, rng: random.Random) -> Document:
        """Draw one document whose question is not held out (`geosd.problems.held_out`)."""
        ...
