"""Objectives by name: every module of this package registers its own."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import geosd.objectives
from geosd.objectives.objective import Objective

Class = TypeVar("Class", bound=type[Objective])
_registered: dict[str, type[Objective]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Class decorator: make a frozen dataclass of type Objective known as `name`.

    Raises:
        TypeError: The class is not a dataclass that subclasses Objective.
        ValueError: Another class has the name.
    """

    def decorate(cls: Class) -> Class:
        if not (issubclass(cls, Objective) and dataclasses.is_dataclass(cls)):
            raise TypeError(
                f"{cls.__qualname__} cannot be registered as {name!r}: an objective is a dataclass"
                " that subclasses Objective.\nHint: put @register above @dataclass(frozen=True)."
            )
        other = _registered.get(name)
        if other is not None and _place(other) != _place(cls):
            raise ValueError(
                f"objective {name!r} is registered twice: {_place(other)} and {_place(cls)}.\n"
                "Hint: give the new one another name."
            )
        _registered[name] = cls
        return cls

    return decorate


def names() -> tuple[str, ...]:
    """All registered names, sorted."""
    _import_all()
    return tuple(sorted(_registered))


def build(name: str, **hyperparameters: Any) -> Objective:
    """The objective called `name`; hyperparameters not given take the method's defaults.

    Raises:
        ValueError: An unknown name or hyperparameter, or a value the method does not allow; says
            what is allowed.
    """
    known = names()
    if name not in known:
        raise ValueError(
            f"unknown objective {name!r}; allowed are {', '.join(known)}.\n"
            f"Hint: {_closest(name, known)}"
        )
    cls = _registered[name]
    allowed = tuple(each.name for each in dataclasses.fields(cls) if each.init)
    for key in hyperparameters:
        if key not in allowed:
            raise ValueError(
                f"objective {name!r} has no hyperparameter {key!r}; allowed are"
                f" {', '.join(allowed) or 'none'}.\nHint: {_closest(key, allowed)}"
            )
    return cls(**hyperparameters)


def _import_all() -> None:
    """Import every module beside this one, so that adding a method is adding a file."""
    for module in pkgutil.iter_modules(geosd.objectives.__path__):
        importlib.import_module(f"geosd.objectives.{module.name}")


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _closest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "remove it, or correct its spelling."
