"""Classes by name, and the name that was probably meant: what methods and data sets share.

A method or a data set is one file of a package. The file registers its class, and the registry
imports every file of the package, so nothing else needs to name the new one.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type)


def registered_name_hint(word: object, allowed: Iterable[object]) -> str:
    """`Did you mean NAME? ` where a registered name is close to the word, otherwise nothing."""
    close = difflib.get_close_matches(str(word), list(map(str, allowed)), n=1, cutoff=0.5)
    return f"Did you mean {close[0]}? " if close else ""


class Registry(Generic[Base]):
    """Classes of a `kind`, as errors call it, which the modules of a package register by name.

    Example: Registry("objective", "geosd.objectives").
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._classes: dict[str, type[Base]] = {}

    def register(self, name: str) -> Callable[[Class], Class]:
        """Class decorator: register a class under a name.

        A module of the package bears the name of its class, hyphens as underscores: the workflow
        finds the code of a class by this name, and another one would leave edits unnoticed.

        Raises:
            ValueError: Another class has the name, or the module has another name.
        """

        def decorate(cls: Class) -> Class:
            other = self._classes.get(name)
            if other is not None and _path(other) != _path(cls):
                raise ValueError(
                    f"{self.kind} {name!r} is registered twice: {_path(other)} and {_path(cls)}.\n"
                    "Hint: give the new one another name."
                )
            package, _, module = cls.__module__.rpartition(".")
            if package == self.package and module != name.replace("-", "_"):
                raise ValueError(
                    f"{self.kind} {name!r} is registered by module {module!r}; allowed is"
                    f" {name.replace('-', '_')!r}.\nHint: rename the file or the {self.kind}."
                )
            self._classes[name] = cls
            return cls

        return decorate

    def names(self) -> tuple[str, ...]:
        """All registered names, sorted."""
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        return tuple(sorted(self._classes))

    def get(self, name: str) -> type[Base]:
        """The registered class of a name; the error for another says which there are."""
        if name not in self._classes:  # one module, where the name is right
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        if name not in self._classes:
            allowed = self.names()
            hint = (
                registered_name_hint(name, allowed)
                or f"a new {self.kind} is a module of {self.package}"
            )
            raise ValueError(
                f"unknown {self.kind} {name!r}; allowed are {', '.join(allowed)}.\n"
                f"Hint: {hint.strip()}"
            )
        return self._classes[name]


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
