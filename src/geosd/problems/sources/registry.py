"""Data sets by name: every module of this package registers its own."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

import geosd.problems.sources as package
from geosd.problems.sources.source import Source

Class = TypeVar("Class", bound=type[Source])
_registered: dict[str, type[Source]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Class decorator: make a Source known as `name`, which is its module's name with hyphens.

    The workflow finds a source's code by this name, so another one would leave edits unnoticed.

    Raises:
        ValueError: The module has another name.
    """

    def decorate(cls: Class) -> Class:
        module = cls.__module__.rpartition(".")[2]
        if module != name.replace("-", "_"):
            raise ValueError(
                f"source {name!r} is registered by module {module!r}; allowed is"
                f" {name.replace('-', '_')!r}.\nHint: rename the file or the source."
            )
        _registered[name] = cls
        return cls

    return decorate


def names() -> tuple[str, ...]:
    """All registered names, sorted."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_registered))


def source(name: str) -> Source:
    """The data set called `name`.

    Raises:
        ValueError: There is none; says which there are.
    """
    known = names()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = (
            f"did you mean {close[0]!r}?" if close else "a new one is a module beside the others."
        )
        raise ValueError(f"data.source is {name!r}; allowed are {', '.join(known)}.\nHint: {hint}")
    return _registered[name]()
