"""The paper's checkable statements as data: `claims.yaml`, read and checked.

A claim is a conjunction of comparisons: "variant a differs from variant b in this quantity, in this
direction, by more than this margin". How claims are decided is written in `analysis.verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

EACH_OOD = "each_ood"


@dataclass(frozen=True)
class Comparison:
    """a against b in one quantity.

    Attributes:
        a: Variant that is claimed to differ.
        b: Variant that it is compared with.
        direction: "greater", "less", or "within" (|difference| < margin).
        benchmark: "id", "ood_avg", an OOD benchmark, or "each_ood": all of them, each.
        metric: A metric of the score table, or a quantity of the drift table ("drift/pi_0").
        margin: Difference under the null, in the quantity's unit; -1.7 with "greater" claims that
            a is not more than 1.7 below b.
    """

    a: str
    b: str
    direction: Literal["greater", "less", "within"]
    benchmark: str = "ood_avg"
    metric: str = "avg@k"
    margin: float = 0.0

    def __post_init__(self) -> None:
        """Check direction and margin."""
        if self.direction not in ("greater", "less", "within"):
            raise ValueError(
                f"direction {self.direction!r}; allowed are greater, less, within.\n"
                "Hint: see docs/claims.md."
            )
        if self.direction == "within" and self.margin <= 0:
            raise ValueError(
                f"'within' needs a margin above 0, got {self.margin}.\nHint: see docs/claims.md."
            )


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Attributes:
        id: Short name, unique in the ledger.
        statement: The claim in one sentence of ours.
        place: Where the paper makes it.
        quote: The paper's words, LaTeX markup removed.
        published: The paper's numbers, for the reader.
        comparisons: What must hold, all of it.
    """

    id: str
    statement: str
    place: str
    quote: str
    published: str
    comparisons: tuple[Comparison, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that a study must train for the claim to be tested."""
        return tuple(dict.fromkeys(name for c in self.comparisons for name in (c.a, c.b)))


@cache
def ledger() -> tuple[Claim, ...]:
    """Every claim of `claims.yaml`, in its order."""
    text = resources.files("geosd.analysis").joinpath("claims.yaml").read_text(encoding="utf-8")
    return parse(yaml.safe_load(text))


def parse(entries: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Build claims from plain values.

    In a comparison `a`, `b` and `benchmark` may be lists: one comparison for each combination.

    Raises:
        ValueError: A claim lacks a key, has an unknown one, or repeats an id.
    """
    claims = []
    for entry in entries:
        name = entry.get("id", "without id")
        try:
            claims.append(Claim(**{**entry, "comparisons": _expanded(entry["comparisons"])}))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(
                f"claims.yaml, claim {name}: {error}.\nHint: docs/claims.md shows a claim."
            ) from error
    ids = [claim.id for claim in claims]
    if repeated := {i for i in ids if ids.count(i) > 1}:
        raise ValueError(
            f"claims.yaml: {', '.join(sorted(repeated))} occurs twice.\nHint: ids must be unique."
        )
    return tuple(claims)


def _expanded(entries: Sequence[Mapping[str, Any]]) -> tuple[Comparison, ...]:
    def listed(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return tuple(
        Comparison(**{**entry, "a": a, "b": b, "benchmark": benchmark})
        for entry in entries
        for a in listed(entry["a"])
        for b in listed(entry["b"])
        for benchmark in listed(entry.get("benchmark", "ood_avg"))
    )
