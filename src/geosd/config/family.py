"""A family of studies resolved: its studies, and what its outputs are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from geosd.config.errors import raise_error_if_unknown
from geosd.config.output_needs import unmet_needs
from geosd.config.params_schema import FamilyParamsSchema, Params
from geosd.config.rule_settings import settings_of_output
from geosd.config.study import Study, resolve_study
from geosd.reporting.specs import OutputSpec, family_specs

RESULTS, FIGURES = Path("results"), Path("figures")
CLAIMS = "claims"
"""The one tidy table that lies among the figures of a study: its ledger."""


@dataclass(frozen=True)
class Family:
    """A family resolved: its studies by name, in its order, and its outputs."""

    name: str
    studies: dict[str, Study]
    outputs: tuple[str, ...]
    params: Params
    noun: ClassVar[str] = "family"

    @property
    def overlay(self) -> FamilyParamsSchema:
        """The family's entry in params.yaml."""
        return self.params.families[self.name]

    def settings(self, output: str) -> dict[str, dict[str, Any]]:
        """What an output may read of params.yaml: argument -> study -> value."""
        spec = family_specs()[output]
        by_argument: dict[str, dict[str, Any]] = {}
        for name, study in self.studies.items():
            for argument, value in settings_of_output(spec, study).items():
                by_argument.setdefault(argument, {})[name] = value
        return by_argument

    def tidy_files(self, output: str) -> dict[str, dict[str, Path]]:
        """The tidy files that an output is made of: tidy table -> study -> its file.

        The file is that of the study's results; of a study that has none here, the one that is
        shipped.
        """
        return {
            tidy: {study: family_tidy_file(study, tidy) for study in self.studies}
            for tidy in family_specs()[output].reads
        }

    def files_read_by(self, output: str) -> list[Path]:
        """The same files, one after another."""
        files: list[Path] = []
        for by_study in self.tidy_files(output).values():
            files += by_study.values()
        return files

    def tidy_files_of_all(self) -> list[Path]:
        """The tidy files that all outputs are made of, each once."""
        files: dict[Path, None] = {}
        for output in self.outputs:
            files |= dict.fromkeys(self.files_read_by(output))
        return list(files)


def resolve_family(params: Params, name: str) -> Family:
    """Resolve the family of a name; ConfigError if there is none."""
    raise_error_if_unknown("family", name, params.families)
    entry = params.families[name]
    studies = {study: resolve_study(params, study) for study in entry.of}
    return Family(name, studies, tuple(entry.outputs), params)


def resolve_study_or_family(params: Params, name: str | None = None) -> Study | Family:
    """Resolve a study or a family; where no name is given, the study that params.yaml names."""
    if name in params.families:
        return resolve_family(params, name)
    return resolve_study(params, name)


def family_tidy_file(study: str, tidy: str) -> Path:
    """A tidy file of a study: that of its results, or else the one that is shipped."""
    if tidy == CLAIMS:
        return FIGURES / study / f"{CLAIMS}.csv"
    of_results = RESULTS / study / "analyse" / f"{tidy}.csv"
    shipped = family_shipped_file(study, tidy)
    return shipped if shipped.exists() and not of_results.exists() else of_results


def family_shipped_file(study: str, tidy: str, figures: Path = FIGURES) -> Path:
    """The shipped tidy file of a study, compressed if it is large; it need not be there."""
    if tidy == CLAIMS:
        return figures / study / f"{CLAIMS}.csv"
    plain = figures / study / "source" / f"{tidy}.csv"
    compressed = plain.with_suffix(".csv.gz")
    return compressed if compressed.exists() else plain


def study_of_family_file(path: Path) -> str:
    """The study of a file that `family_tidy_file` names, by its folder.

    >>> study_of_family_file(Path("figures/quick/source/scores.csv.gz"))
    'quick'
    >>> study_of_family_file(Path("figures/quick/claims.csv"))
    'quick'
    """
    return path.parent.name if path.name == f"{CLAIMS}.csv" else path.parent.parent.name


def family_unmet_needs(family: Family, spec: OutputSpec) -> Iterator[str]:
    """Each need of an output that a study of the family does not meet, as `unmet_needs` says it."""
    for name, study in family.studies.items():
        for missing in unmet_needs(study, spec):
            yield f"{missing}, in study {name}"
