"""The schema of the protocol's section `data`: problems, their splits, and how they are put."""

from __future__ import annotations

from string import Formatter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from geosd.config.schema_base import (
    Count,
    Date,
    Name,
    PathWords,
    SectionSchema,
    Seed,
    Words,
    optional_schema,
)
from geosd.problems.fresh_benchmarks import FRESH_TEXT, fresh_benchmarks

FreshText = Annotated[str, Field(pattern=FRESH_TEXT, max_length=160)]
"""A fresh benchmark: its name, or name@SHA-256 of its file."""


def _named_once(texts: tuple[str, ...]) -> tuple[str, ...]:
    fresh_benchmarks(texts)
    return texts


class DataThinking(SectionSchema):
    """Protocol section `data.thinking`: who thinks before the answer. docs/problems.md says why."""

    student: bool
    """The student's rollouts, and pi_0's for the pool, whose solutions are SFT's targets."""
    teacher: bool
    """The teacher, whose prompt shows a solution: it scores the student's tokens, writing none."""
    evaluation: bool
    """Each model that is evaluated."""


class DataWording(SectionSchema):
    """Protocol section `data.wording`: words of a chat model's prompts; null keeps the source's."""

    instruction: Annotated[Words, Field(min_length=1)] | None
    """Text after every question."""
    examples: (
        tuple[Annotated[tuple[Words, Words], Field(description="question, answer")], ...] | None
    )
    """Questions and answers that stand before each prompt as earlier turns; [] for none."""
    privileged: Annotated[Words, Field(min_length=1)] | None
    """The teacher's turn, with the places {question}, {solution} and {instruction}."""

    @model_validator(mode="after")
    def _places(self) -> DataWording:
        """Refuse a teacher's turn without the solution, or with another place."""
        found = {name for _, name, *_ in Formatter().parse(self.privileged or "{solution}") if name}
        if "solution" not in found or not found <= {"question", "solution", "instruction"}:
            raise ValueError(
                f"privileged has the places {', '.join(sorted(found)) or 'none'}; it needs"
                " {solution}, and may have {question} and {instruction}"
            )
        return self


class Data(SectionSchema):
    """Protocol section `data`: problems and their splits, disjoint by question."""

    source: Name
    """Where problems come from, a name of geosd.problems.sources: `dapo-math` is DAPO-Math-17k and
    the paper's four benchmarks (Appendix "Data and privileged context"), `search` is the
    miniature's world, `word-problems` has arithmetic in English, `jsonl` reads files of one's
    own."""
    raw: PathWords | None
    """Folder of DAPO-Math's and the benchmarks' raw files, docs/problems.md; file or folder of
    the user's problems, docs/extending.md; other sources need none."""
    thinking: DataThinking
    """Whether a chat model thinks before its answer. Student, teacher and evaluation have a switch
    each: {student: ..., teacher: ..., evaluation: ...}. Some templates leave no choice. Not given
    in the paper."""
    wording: DataWording | None
    """Words of a chat model's prompts: {instruction: ..., examples: ..., privileged: ...}; null
    keeps those of the source. Not given in the paper."""
    date: Date | None = optional_schema(None)
    """The day that a chat template gets for today, "YYYY-MM-DD"; left out, or null, a template that
    asks is refused: prompts of another day would be others. Not given in the paper."""
    overlaps: Literal["exclude", "keep"]
    """Whether DAPO problems that are also in a benchmark are left out, or drawn and only reported.
    Not given in the paper."""
    fresh: Annotated[tuple[FreshText, ...], AfterValidator(_named_once)] = optional_schema(())
    """Further, younger benchmarks: `aime26`, `hmmt_feb26`, `hmmt_nov25`, `brumo25`, or any
    file among the benchmarks; a file that nothing else pins is `name@SHA-256`. They are scored and
    shown apart, and no average and no test reads them. docs/problems.md."""
    purpose: Literal["study", "selection", "validation"]
    """A study trains on `train` and is judged on the benchmarks. A selection of hyperparameters is
    judged on `select_validation` alone, and trains on `select_train`, Appendix "Baselines", or for
    `validation` on `train`: then its runs are those of the studies that use what it selects."""
    seed: Seed
    """Seed of the draw of problems. Not given in the paper."""
    train: Count
    """Training problems. Appendix "Data": 1K."""
    select_train: Count
    """Problems on which candidate hyperparameters are trained. Appendix "Baselines": 100."""
    select_validation: Count
    """Problems on which candidates are compared. Appendix "Baselines": 200."""
    test_id: Count
    """Held-out in-distribution problems. Appendix "Evaluation": 500."""
    test_per_benchmark: Count | None
    """Problems of each out-of-distribution benchmark; null takes the whole benchmark, as the paper
    does (AIME 30 each, AMC 40, MATH-500 500)."""
    conflict: Annotated[float, Field(ge=0, le=1)] | None
    """How far the prior of x in the search world's ID problems is opposed to the OOD problems': 0
    is their mean prior, null and 1 the opposed one, docs/search.md. Other sources have none."""
