"""The paper's checkable statements as data: `claims.yaml`, read and checked.

A claim is a conjunction of comparisons: "this quantity of a is greater than that of b, by more than
this margin"; a claim on costs is a conjunction of numbers that can be computed. How claims are
decided is written in `geosd.claims.verdicts`, what the places in a sweep mean in
`geosd.claims.selectors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

EACH_OOD = "each_ood"
MODEL = "model"
KNOBS = ("privilege", "learning_rate", "steps")
"""What a sweep varies; with `model`, the keys of a side that name a place in it."""
KINDS = ("main", "ablation", "privilege", "ladder", "stepsize")
"""Kinds of studies, by what they are designed for; all but the main one end their names with it."""
DETAILS = ("k", "at", "ranks", "overlap")
"""Keys of a side that only some metrics have (`geosd.claims.metrics`)."""


@dataclass(frozen=True)
class Side:
    """One quantity of one variant.

    Attributes:
        variant: Whose quantity.
        benchmark: "id", "ood_avg", an OOD benchmark, "each_ood" (all of them, each), or "hard_half"
            and "easy_half": the mean over those that the base model finds hardest and easiest.
        metric: One of `geosd.claims.metrics`.
        where: The rest of what is said about the side, by key: places in a sweep, on a ladder of
            models or in a run, and details of the metric.
    """

    variant: str
    benchmark: str = "ood_avg"
    metric: str = "avg@k"
    where: tuple[tuple[str, Any], ...] = ()

    def said(self, key: str) -> Any:
        """What the side says about a key; None where nothing."""
        return dict(self.where).get(key)


@dataclass(frozen=True)
class Comparison:
    """a - times b, compared with a margin.

    Attributes:
        a: What is claimed to differ.
        b: What it is compared with; None compares a with the margin alone.
        direction: "greater", "less", or "within" (|difference| < margin).
        margin: Difference under the null, in the quantity's unit; -1.7 with "greater" claims that
            a is not more than 1.7 below b.
        over: Variant whose value is subtracted from a and from b first, so that gains over it are
            compared; on the same model, benchmark and metric.
        times: Factor of b, e.g. .5: "less than half of".
    """

    a: Side
    b: Side | None
    direction: Literal["greater", "less", "within"]
    margin: float = 0.0
    over: str | None = None
    times: float = 1.0

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

    @property
    def sides(self) -> tuple[Side, ...]:
        """a, and b where there is one."""
        return (self.a,) if self.b is None else (self.a, self.b)


@dataclass(frozen=True)
class Computed:
    """A printed number that follows from dimensions and settings.

    Attributes:
        quantity: Its name in `geosd.claims.computed_costs`.
        printed: The paper's number; "agrees" is to its last digit, give or take one.
        digits: Decimals of the printed number.
        relation: "agrees", or "less" where the paper gives an upper bound.
    """

    quantity: str
    printed: float
    digits: int
    relation: Literal["agrees", "less"] = "agrees"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Attributes:
        id: Short name, unique in the ledger.
        statement: The claim in one sentence of ours.
        place: Where the paper makes it.
        quote: The paper's words, LaTeX markup removed.
        published: The paper's numbers, for the reader.
        study: The kind of study that is designed to judge it, one of `KINDS`.
        comparisons: What must hold, all of it.
        computed: What must agree, all of it.
        unmeasured: What the claim needs and nothing here measures; empty where it can be judged.
    """

    id: str
    statement: str
    place: str
    quote: str
    published: str
    study: str
    comparisons: tuple[Comparison, ...] = ()
    computed: tuple[Computed, ...] = ()
    unmeasured: str = ""

    def __post_init__(self) -> None:
        """A claim must say in exactly one way how it is judged, and by which kind of study."""
        if self.study not in KINDS:
            raise ValueError(
                f"no kind of study is {self.study!r}; allowed are {', '.join(KINDS)}.\n"
                "Hint: see docs/claims.md."
            )
        if sum(map(bool, (self.comparisons, self.computed, self.unmeasured))) != 1:
            raise ValueError(
                "needs exactly one of comparisons, computed and unmeasured.\n"
                "Hint: see docs/claims.md."
            )

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that the claim is about."""
        names = [
            name
            for c in self.comparisons
            for name in (*(side.variant for side in c.sides), *filter(None, [c.over]))
        ]
        return tuple(dict.fromkeys(names))

    @property
    def of_a_ladder(self) -> bool:
        """Whether it compares models of several sizes, so that it is judged once for all."""
        return any(side.said(MODEL) is not None for c in self.comparisons for side in c.sides)


def kind_of(study: str) -> str:
    """The kind of a study by its name: `miniature_ladder` is a ladder, `miniature` a main study."""
    ending = study.rpartition("_")[2]
    return ending if ending in KINDS else KINDS[0]


@cache
def ledger() -> tuple[Claim, ...]:
    """Every claim of `claims.yaml`, in its order."""
    text = resources.files("geosd.claims").joinpath("claims.yaml").read_text(encoding="utf-8")
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
            claims.append(_claim(**entry))
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


def _claim(
    comparisons: Sequence[Mapping[str, Any]] = (),
    computed: Mapping[str, float | str] | None = None,
    **said: Any,
) -> Claim:
    numbers = [_computed(name, value) for name, value in (computed or {}).items()]
    return Claim(**said, comparisons=_expanded(comparisons), computed=tuple(numbers))


def _computed(quantity: str, printed: float | str) -> Computed:
    """`1.27` is to agree, `< 1` to be below; digits are those written, so text keeps 8.0 apart."""
    text = str(printed)
    relation = "less" if text.startswith("<") else "agrees"
    number = text.removeprefix("<").strip()
    return Computed(quantity, float(number), len(number.partition(".")[2]), relation)


def _expanded(entries: Sequence[Mapping[str, Any]]) -> tuple[Comparison, ...]:
    def listed(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return tuple(
        compare(**{**entry, "a": a, "b": b, "benchmark": benchmark})
        for entry in entries
        for a in listed(entry["a"])
        for b in listed(entry.get("b"))
        for benchmark in listed(entry.get("benchmark", "ood_avg"))
    )


def compare(
    a: str | Mapping[str, Any],
    b: str | Mapping[str, Any] | None,
    direction: Literal["greater", "less", "within"],
    benchmark: str = "ood_avg",
    metric: str = "avg@k",
    margin: float = 0.0,
    over: str | None = None,
    times: float = 1.0,
) -> Comparison:
    """A comparison as `claims.yaml` writes it: what it says holds for both sides.

    Args:
        a: A variant, or `variant` and whatever of this side is otherwise.
        b: Likewise; None for none.
        direction: As in `Comparison`.
        benchmark: Of both sides.
        metric: Of both sides.
        margin: As in `Comparison`.
        over: As in `Comparison`.
        times: As in `Comparison`.

    Raises:
        ValueError: A side has a key that no side has.
    """

    def side(said: str | Mapping[str, Any]) -> Side:
        given = {"variant": said} if isinstance(said, str) else dict(said)
        names = {"benchmark": benchmark, "metric": metric}
        own = {key: given.pop(key, names.get(key)) for key in ("variant", *names)}
        if unknown := set(given) - {MODEL, *KNOBS, *DETAILS}:
            raise ValueError(
                f"a side has no key {', '.join(sorted(unknown))}; allowed are variant, benchmark,"
                f" metric, {MODEL}, {', '.join((*KNOBS, *DETAILS))}.\nHint: see docs/claims.md."
            )
        return Side(**own, where=tuple(sorted(given.items())))

    return Comparison(
        side(a), None if b is None else side(b), direction, margin, over, float(times)
    )
