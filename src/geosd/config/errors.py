"""Mistakes in params.yaml, and the error that lists them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from geosd.registry import registered_name_hint

Key = str | int
KeyPath = tuple[Key, ...]
MOST_SHOWN = 30
"""Mistakes that one error lists: a wrong value of a recipe is one for each run of a grid."""


class ConfigError(ValueError):
    """An error in params.yaml, or in a question about it; ends with a hint."""


@dataclass(frozen=True)
class Mistake:
    """One mistake in a configuration file: the key, its line from 1, what is wrong and allowed."""

    path: KeyPath
    line: int
    message: str


def config_error(file: Path, mistakes: list[Mistake]) -> ConfigError:
    """The error that lists the mistakes in a configuration file, in the order of its lines."""
    ordered = sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.line)
    lines = [f"  {file}:{m.line}: {_dotted(m.path)}: {m.message}" for m in ordered]
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = [f"  and {len(lines) - MOST_SHOWN} more"]
    return ConfigError(
        f"{file} has {count}:\n" + "\n".join(lines) + "\nHint: docs/configuration.md explains the"
        " file; an editor with a YAML language server shows every key's meaning and bounds."
    )


def _dotted(path: KeyPath) -> str:
    """A key as errors write it: `protocol.training.betas[0]`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".") or "file"


def alternatives_in_error(word: object, allowed: list[str]) -> str:
    """How a mistake's message lists what is allowed, after the name that was probably meant."""
    return f"{registered_name_hint(word, allowed)}Allowed: {', '.join(allowed)}."


def raise_error_if_unknown(kind: str, name: object, allowed: Iterable[object]) -> None:
    """Raise the error for a name that no study, model, variant or rule has; it says which are."""
    if name not in allowed:
        raise ConfigError(
            f"{name!r} is no {kind}. {alternatives_in_error(name, list(map(str, allowed)))}\n"
            "Hint: names are defined in params.yaml and are case-sensitive."
        )
