"""The declaration of each table, figure and merged ledger, and how the workflow reads it.

An output is two files `table_*`, `figure_*` or `claims_*` of geosd.reporting. The YAML file
declares it (`OutputSpec`). The module has a function, `build`, `plot` or `merge`, whose arguments
are named like what it reads, and which reads nothing else. Arguments mean the same everywhere: a
tidy file (`geosd.scores.tidy`) is a DataFrame; `models` are in the study's order; `methods` are its
variants in any order, shown in the paper's; `candidates` maps a candidate to its variant; `points`
holds, for each model, `run` (the name in the scores), `variant` and the swept settings of each run
of its sweeps.

An output of a family of studies says `family: true`: each of its arguments is a mapping from study,
in the family's order, to what the argument is of that study.

Workflow and configuration look at every declaration at each start, and importing the modules would
take seconds: of a module only the syntax is read.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import Field
from pydantic.dataclasses import dataclass

from geosd.claims.published import published_family
from geosd.scores.tidy import COLUMNS

REPORTING = Path(__file__).parent


class _OutputKind(NamedTuple):
    """What all outputs of a kind share; `writer` is the module whose `save` writes one."""

    label: str
    function: str
    writer: str
    extensions: tuple[str, ...]


OUTPUT_KINDS: Mapping[str, _OutputKind] = {
    "table": _OutputKind("Table", "build", "geosd.reporting.saved_tables", ("csv", "md", "tex")),
    "figure": _OutputKind("Figure", "plot", "geosd.reporting.figures", ("pdf", "svg", "png")),
    "claims": _OutputKind(
        "Ledger", "merge", "geosd.reporting.merged_ledger", ("csv", "md", "pdf", "svg", "png")
    ),
}
OF_FAMILIES = ("scores", "shares", "drift", "consensus", "habits")
OF_FAMILIES += ("training_curves", "drift_over_steps")
"""Tidy files of a study that an output of a family may read; a study has one of each."""


@dataclass(frozen=True, config={"extra": "forbid"})
class OutputSpec:
    """Declaration of an output, a table, a figure or a merged ledger: the keys of its YAML file.

    Attributes:
        title: What it shows, a few words.
        caption: What one sees, as the report says it; reStructuredText, in lines of any length.
            Words in braces hold only where the paper's numbers stand next to those of a model.
        protocol: Keys of the protocol, as `training.top_k`, whose last part is an argument's name.
        paper: The item of the paper that it stands for, as claims name it, e.g. "Figure frontier";
            empty for one that the paper has not.
        trained: Narrows `methods` to the listed ones that the study trains.
        swept: Keys of the training section that `points` are over.
        compares: Variants that must be among the study's methods, as must one that is none of
            `besides`, and one of `one_of` where there are any.
        one_of: See `compares`.
        besides: See `compares`.
        needs: What else the study must have: words of `NEEDS` in `geosd.config.output_needs`.
        family: Whether it is over the studies of a family; then each of these meets all needs.
        reads: Tidy files, the arguments among `COLUMNS`; not to be written.
        settings: All other arguments, not to be written: names in `OUTPUT_SETTINGS` of
            `geosd.config.rule_settings`, and keys of the protocol as `protocol.training.top_k`.
    """

    title: Annotated[str, Field(min_length=1)]
    caption: Annotated[str, Field(min_length=1)]
    protocol: tuple[str, ...] = ()
    paper: str = ""
    trained: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    compares: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    family: bool = False
    reads: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def words(self, beside_paper: bool) -> str:
        """The caption of a study in which the paper's numbers stand by a model's, or do not."""
        caption = " ".join(self.caption.split())
        return re.sub(r"\{([^}]*)\}", r"\1" if beside_paper else "", caption)


def output_kind(name: str) -> _OutputKind:
    """The kind of an output, e.g. table or figure, by the beginning of its name."""
    return OUTPUT_KINDS[name.partition("_")[0]]


def output_spec_modules(name: str) -> tuple[str, str]:
    """The modules that make an output: its own, and the writer of its kind."""
    return f"geosd.reporting.{name}", output_kind(name).writer


def render_output_spec(
    name: str, tables: Mapping[str, Any], settings: Mapping[str, Any], folder: Path
) -> list[Path]:
    """Write the files of an output as its spec says, from tables and settings by name."""
    module, writer = map(import_module, output_spec_modules(name))
    made = getattr(module, output_kind(name).function)(**tables, **settings)
    return writer.save(made, folder, name)


def output_spec_title(name: str) -> str:
    """The title of an output: what it shows, capitalised."""
    title = output_spec_declarations()[name].title
    return f"{title[0].upper()}{title[1:]}"


def output_spec_caption(name: str, models: Iterable[str]) -> str:
    """The words of an output's caption; they speak of the paper where a model stands for its."""
    return output_spec_declarations()[name].words(any(map(published_family, models)))


@cache
def output_spec_declarations(folder: Path = REPORTING) -> Mapping[str, OutputSpec]:
    """The declarations of all outputs by name, read without importing any module.

    Raises:
        ValueError: A declaration cannot be read; says which, and what is allowed.
    """
    files = sorted(path for kind in OUTPUT_KINDS for path in folder.glob(f"{kind}_*.yaml"))
    return MappingProxyType({path.stem: _declaration(path) for path in files})


@cache
def output_specs(folder: Path = REPORTING) -> Mapping[str, OutputSpec]:
    """The declarations of all outputs of a study by name; see `output_spec_declarations`."""
    found = output_spec_declarations(folder)
    return MappingProxyType({name: spec for name, spec in found.items() if not spec.family})


@cache
def family_specs(folder: Path = REPORTING) -> Mapping[str, OutputSpec]:
    """The declarations of all outputs of a family by name; see `output_spec_declarations`."""
    found = output_spec_declarations(folder)
    return MappingProxyType({name: spec for name, spec in found.items() if spec.family})


def _declaration(path: Path) -> OutputSpec:
    """The declaration in a YAML file, and the arguments of the function in its module."""
    kind = output_kind(path.stem)
    try:
        spec = OutputSpec(**yaml.safe_load(path.read_text(encoding="utf-8")))
        body = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8")).body
        functions = {node.name: node.args for node in body if isinstance(node, ast.FunctionDef)}
        arguments = functions[kind.function]
    except (OSError, SyntaxError, TypeError, ValueError, KeyError, yaml.YAMLError) as error:
        allowed = ", ".join(each.name for each in fields(OutputSpec)[:-2])
        raise ValueError(
            f"{path} is no declaration of an output: {error}\nHint: its keys are {allowed};"
            f" {path.stem}.py has a function {kind.function}."
        ) from error
    without_default = len(arguments.args) - len(arguments.defaults)
    names = [argument.arg for argument in arguments.args[:without_default]]
    of_protocol = {key.rpartition(".")[2]: f"protocol.{key}" for key in spec.protocol}
    reads, settings = [], []
    for name in names:
        if name in COLUMNS:
            reads.append(name)
        else:
            settings.append(of_protocol.get(name, name))
    strange = [name for name in reads if name not in (*OF_FAMILIES, "claims")]
    if spec.family and strange:
        raise ValueError(
            f"{path.with_suffix('.py')} reads {strange[0]}, of which a study has several files.\n"
            f"Hint: an output of a family reads {', '.join(OF_FAMILIES)} and claims."
        )
    return replace(spec, reads=tuple(reads), settings=tuple(settings))
