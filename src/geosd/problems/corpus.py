"""What a base model of one world is pretrained on: documents, and where they come from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Document:
    """A pretraining document: a prompt, which may hold the beginning of a solution, and the rest.

    `ends` says whether the end of the response is learned too.
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
        """Draw one document whose question is not held out."""
        ...

    def like(self, word: str) -> str:
        """The word of a smaller world that means most of what this one means."""
        ...
