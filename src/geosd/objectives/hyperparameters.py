"""Allowed values of a method's hyperparameters, declared where each is defined.

    beta: Annotated[float, Bounds(gt=0, lt=1), OnlyWith(divergence="jsd")] = 0.5
    \"\"\"Share of the teacher in the mixture; the paper selects 0.5.\"\"\"

`check` holds an objective to its annotations when it is built. `declared_hyperparameters` reads the
annotations of all methods from the syntax of their files: params.yaml is checked without torch.
"""

import ast
import dataclasses
import functools
import inspect
import math
import operator
import textwrap
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

FOLDER = Path(__file__).parent
MISSING = dataclasses.MISSING
KINDS = {float: "a number", int: "an integer", bool: "True or False", str: "a text"}


@dataclass(frozen=True)
class Bounds:
    """Limits of a number, named as in pydantic: greater than, or equal; less than, or equal."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def __contains__(self, value: float) -> bool:
        """Whether a number is within the limits; nan never is."""
        for key, limit in self._limits().items():
            holds = getattr(operator, key)
            if not holds(value, limit):
                return False
        return not math.isnan(value)

    def __str__(self) -> str:
        """The interval, as (0, 1]."""
        low, high = "(-inf", "inf)"
        if self.ge is not None:
            low = f"[{self.ge}"
        elif self.gt is not None:
            low = f"({self.gt}"
        if self.le is not None:
            high = f"{self.le}]"
        elif self.lt is not None:
            high = f"{self.lt})"
        return f"{low}, {high}"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        """The number's schema with these limits; pydantic calls this, and nothing here needs it."""
        return {**handler(source), **self._limits()}

    def _limits(self) -> dict[str, float]:
        return {key: limit for key, limit in vars(self).items() if limit is not None}


class OnlyWith:
    """The hyperparameter is read only with some values of another; else it keeps its default.

    Example:
        >>> OnlyWith(divergence="jsd")
        OnlyWith(divergence='jsd')
        >>> OnlyWith(mode=("select", "reweight"))
        OnlyWith(mode=('select', 'reweight'))
    """

    def __init__(self, **condition: Any) -> None:
        """Take one condition, other hyperparameter = its value, or a tuple of values."""
        ((self.other, self.value),) = condition.items()

    def __repr__(self) -> str:
        """As written."""
        return f"OnlyWith({self.other}={self.value!r})"

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the other hyperparameter."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True)
class Hyperparameter:
    """Hyperparameter of an objective; the annotation has the type, `Bounds` and `OnlyWith`.

    The default is `MISSING` where a value must be given; the meaning is the docstring.
    """

    name: str
    annotation: Any
    default: Any
    meaning: str

    @property
    def notes(self) -> tuple[Any, ...]:
        """`Bounds` and `OnlyWith`, where the annotation has any."""
        return getattr(self.annotation, "__metadata__", ())

    def refusal(self, value: Any) -> str | None:
        """Allowed values, for a value that is not allowed; None for one that is."""
        kind = getattr(self.annotation, "__origin__", self.annotation)
        if kind is Literal:
            options = typing.get_args(self.annotation)
            return None if value in options else f"allowed are {', '.join(map(repr, options))}"
        if kind not in KINDS:
            return None
        types = (int, float) if kind is float else (kind,)
        right = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
        bounds = [note for note in self.notes if isinstance(note, Bounds)]
        if right and all(value in one for one in bounds):
            return None
        return f"allowed is {KINDS[kind]}{''.join(f' in {one}' for one in bounds)}"

    def conflict(self, values: Mapping[str, Any]) -> str | None:
        """The need of a value that is not read, given all values; None where all is right."""
        for note in self.notes:
            unread = isinstance(note, OnlyWith) and values[note.other] not in note.values
            if unread and values[self.name] != self.default:
                allowed = " or ".join(f"{note.other}={value!r}" for value in note.values)
                return f"it is read only with {allowed}"
        return None


def check(objective: Any) -> None:
    """Check an objective's hyperparameters against the bounds that its class declares.

    Raises:
        ValueError: Names the hyperparameter, its value, and what is allowed.
    """
    cls = type(objective)
    annotations = typing.get_type_hints(cls, include_extras=True)
    values = {field.name: getattr(objective, field.name) for field in dataclasses.fields(cls)}
    for field in dataclasses.fields(cls):
        one = Hyperparameter(field.name, annotations[field.name], field.default, "")
        problem = one.refusal(values[field.name]) or one.conflict(values)
        if problem:
            raise ValueError(
                f"{cls.__module__.rpartition('.')[2]}.{field.name} is {values[field.name]!r};"
                f" {problem}.\nHint: {_meaning(cls, field.name)}"
            )


def declared_hyperparameters(folder: Path = FOLDER) -> dict[str, tuple[Hyperparameter, ...]]:
    """The hyperparameters of every objective registered in a folder, without importing any.

    Raises:
        ValueError: An annotation has a name in it that is none of `Annotated`, `Literal`, `Bounds`,
            `OnlyWith`, `float`, `int`, `bool`, `str` and `inf`.
    """
    classes, names = _registered(folder)
    return {name: tuple(_fields(classes, cls).values()) for name, cls in sorted(names.items())}


def declared_rollouts(folder: Path = FOLDER) -> dict[str, str]:
    """The data of every registered objective, `Objective.rollouts`, without importing any."""
    classes, names = _registered(folder)
    return {name: _class_value(classes, cls, "rollouts") for name, cls in sorted(names.items())}


@functools.cache
def _registered(folder: Path) -> tuple[dict[str, ast.ClassDef], dict[str, str]]:
    """All classes of the files in a folder, and the class that each objective's name stands for."""
    classes: dict[str, ast.ClassDef] = {}
    names: dict[str, str] = {}
    for file in sorted(folder.glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
                for call in node.decorator_list:
                    if (
                        isinstance(call, ast.Call)
                        and ast.unparse(call.func) == "register_objective"
                    ):
                        names[ast.literal_eval(call.args[0])] = node.name
    return classes, names


def _class_value(classes: Mapping[str, ast.ClassDef], name: str, attribute: str) -> Any:
    """The literal that a class, or else the first of its bases that does, gives an attribute."""
    if name not in classes:
        return None
    for line in classes[name].body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and line.value:
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            if attribute in map(ast.unparse, targets):
                return ast.literal_eval(line.value)
    values = (_class_value(classes, ast.unparse(base), attribute) for base in classes[name].bases)
    return next((value for value in values if value is not None), None)


def _fields(classes: Mapping[str, ast.ClassDef], name: str) -> dict[str, Hyperparameter]:
    """The fields of a class, those of its bases first."""
    node = classes[name]
    fields: dict[str, Hyperparameter] = {}
    for base in map(ast.unparse, node.bases):
        if base in classes:
            fields |= _fields(classes, base)
    for line, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(line, ast.AnnAssign) and "ClassVar" not in ast.unparse(line.annotation):
            key = ast.unparse(line.target)
            default = MISSING if line.value is None else _value(line.value)
            fields[key] = Hyperparameter(key, _value(line.annotation), default, _text(after))
    return fields


def _text(line: ast.stmt | None) -> str:
    """The docstring that a line is, or nothing."""
    value = line.value if isinstance(line, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return " ".join(value.value.split())
    return ""


def _value(node: ast.expr) -> Any:
    allowed = {"Annotated": Annotated, "Literal": Literal, "Bounds": Bounds, "OnlyWith": OnlyWith}
    allowed |= {"float": float, "int": int, "bool": bool, "str": str, "inf": math.inf}
    try:
        code = compile(ast.Expression(node), "<hyperparameter>", "eval")
        return eval(code, {"__builtins__": {}, **allowed})
    except NameError as error:
        raise ValueError(
            f"{ast.unparse(node)}: {error}; allowed are {', '.join(allowed)}.\nHint:"
            " hyperparameters are read without running their file; write the type out."
        ) from error


def _meaning(cls: type, name: str) -> str:
    """The docstring of a hyperparameter, for the hint of an error."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(node, ast.ClassDef)
        meaning = _fields({cls.__name__: node}, cls.__name__)[name].meaning
    except (OSError, TypeError, KeyError, ValueError):
        meaning = ""
    return meaning or f"the docstring of {cls.__qualname__} says what it is."
