"""The code behind a step: the one answer that rules, manifests, `make stale` and DVC share.

It is read from syntax trees, so nothing is imported and nothing is guessed from what happens to be
loaded: a step's module, what it imports of this package, directly or not, the data files that these
modules name, and the modules that the step finds by a name in its settings.

A module is hashed by its meaning: its syntax tree without docstrings, where comments, blank lines
and the layout are gone by parsing. The tree is written in a form of our own, because that of
`ast.dump` is another one in each version of Python.
"""

import ast
import hashlib
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import geosd

_BEGAN = time.time()  # a step imports this before it does anything
SOURCES = Path(geosd.__file__).parents[1]
"""The folder that holds the package."""
LEFT_OUT = ("geosd.config", "geosd.models.model_card")
"""Packages and modules that decide no result: what the configuration decides reaches a step through
its settings, and a model card is written to a result that is whole."""
DATA_FILES = ("yaml", "jinja", "mplstyle")
"""Endings of data files; they are hashed byte by byte."""
BY_NAME = {"objective": "geosd.objectives", "source": "geosd.problems.sources"}
"""Settings that name a module, and the package in which a step finds it."""
HELD = {
    **{"evaluate_pi_0": "evaluate", "fetch": "data"},
    **{"environment": "pages", "front_page": "pages", "redraw": "ship"},
}
"""Steps that the module of another name holds: step -> module."""
READS = {
    **dict.fromkeys(("data", "pool", "states", "evaluate", "evaluate_pi_0"), ("source",)),
    "train": ("objective", "source"),
}
"""Steps that find modules by name, and the settings that name them."""
ENGINES = {name: f"geosd.sampling.{name}_" for name in ("transformers", "vllm")}
"""Engines of `rollout.engine`, and how the names of their own modules begin."""

NO_COMMIT = {
    "dubious ownership": "the clone is another user's, which git does not read (safe.directory)",
    "not a git repository": "the code lies in no git repository",
}
"""Git's message where it names no commit, and the cause."""
NO_HISTORY = "the repository has no commit yet, or is damaged"


def code_of(
    step: str,
    settings: Mapping[str, Any] | None = None,
    modules: Iterable[str] = (),
    sources: Path = SOURCES,
) -> dict[str, str]:
    """The code behind a step: its module in `geosd.cli` and all that it imports of this package.

    The step's settings may name a data source, an objective, and the one engine that samples;
    `modules` are further ones: a table's or a figure's. The result is path of each file from
    `sources`, as `geosd/cli/train.py`, sorted -> its `code_meaning`.
    """
    settings = settings or {}
    named = [code_module(key, settings[key]) for key in READS.get(step, ())]
    engine = settings.get("rollout", {}).get("engine")
    others = [begins for name, begins in ENGINES.items() if engine not in (None, name)]
    files = _closure(
        (f"geosd.cli.{HELD.get(step, step)}", *named, *modules), (*LEFT_OUT, *others), sources
    )
    return {file: code_meaning(sources / file) for file in files}


def code_digest(files: Mapping[str, str | None]) -> str | None:
    """One digest of code for what `code_of` returns; None where the hash of a file is not known."""
    if None in files.values():
        return None
    lines = (f"{name}\t{hashed}\n" for name, hashed in sorted(files.items()))
    return f"code-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"


def code_version(
    step: str, settings: Mapping[str, Any], begun_with: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """The package's version, the commit, and the digests of the files of code behind a step.

    `begun_with` are the step's `code_hashes` when it began. Commit and `dirty`, whether the sources
    differ from it, are None without git or history: a run must not fail for want of a label, and
    `no_commit` says why there is none. The digest is None where the hash of a file is.
    """
    folder = SOURCES / "geosd"
    commit = _git(folder, "rev-parse", "HEAD")
    why = {} if commit else {"no_commit": why_no_commit(folder)}
    # Only tracked sources count: a results folder in the clone does not make the code another.
    files = code_hashes(step, settings) if begun_with is None else begun_with
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder))
    now = {name: code_meaning(SOURCES / name) for name in files if (SOURCES / name).exists()}
    files = {name: hashed if now.get(name) == hashed else None for name, hashed in files.items()}
    return {
        "version": geosd.__version__,
        "commit": commit,
        **why,
        "dirty": None if commit is None or changed is None else bool(changed),
        "digest": code_digest(files),
        "files": files,
    }


def code_hashes(step: str, settings: Mapping[str, Any]) -> dict[str, str | None]:
    """The code behind a running step, as `code_of` has it.

    The hash is None where the file has been edited since the step began: nobody knows any more what
    was loaded. A date in the future, as of another machine's clock, says nothing of an edit.
    """
    now = time.time()
    return {
        name: None if _BEGAN < (SOURCES / name).stat().st_mtime <= now else hashed
        for name, hashed in code_of(step, settings).items()
    }


def why_no_commit(folder: Path) -> str | None:
    """Why git names no commit of a folder, without the folder's path; None where it names one."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    english = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, env=english)
    except FileNotFoundError:
        return "git is not installed"
    except (OSError, subprocess.SubprocessError) as error:
        return f"git could not be asked: {type(error).__name__}"
    if done.returncode == 0:
        return None
    return next((why for said, why in NO_COMMIT.items() if said in done.stderr), NO_HISTORY)


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def code_meaning(file: Path) -> str:
    """The SHA-256 of a file of code: of what a module means, or of a data file's bytes."""
    text = file.read_bytes()
    return _parsed(text)[1] if file.suffix == ".py" else hashlib.sha256(text).hexdigest()


def code_module(key: str, value: str | Mapping[str, Any]) -> str:
    """The module of code that a setting names: an objective's or a data source's.

    Example:
        >>> code_module("objective", {"name": "geosd"}), code_module("source", "dapo-math")
        ('geosd.objectives.geosd', 'geosd.problems.sources.dapo_math')
    """
    name = value if isinstance(value, str) else value["name"]
    return f"{BY_NAME[key]}.{name.replace('-', '_')}"


@cache
def _closure(modules: tuple[str, ...], left_out: tuple[str, ...], sources: Path) -> list[str]:
    files: set[Path] = set()
    visited: set[str] = set()
    queue = list(modules)
    while queue:
        name = queue.pop()
        if name in visited or name.startswith(left_out):
            continue
        visited.add(name)
        path = _file_of(name, sources)
        if path is None:
            continue
        imported, data = _read(path)
        files |= {path, *data}
        queue += [name.rpartition(".")[0], *imported]
    return sorted(path.relative_to(sources).as_posix() for path in files)


@cache
def _file_of(name: str, sources: Path) -> Path | None:
    """The file of a module or package; None of a name that is neither."""
    path = sources.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path if path.exists() else None


@cache
def _read(path: Path) -> tuple[list[str], list[Path]]:
    """Possible modules of this package that a file imports; data files that its text names."""
    text = path.read_bytes()
    neighbours = [file for kind in DATA_FILES for file in path.parent.glob(f"*.{kind}")]
    return _parsed(text)[0], [file for file in neighbours if file.name.encode() in text]


@cache
def _parsed(text: bytes) -> tuple[list[str], str]:
    """Possible modules of this package that a module imports; the hash of its meaning."""
    tree = ast.parse(text)
    names: list[str] = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    meant = hashlib.sha256("".join(_written(tree)).encode()).hexdigest()
    return [name for name in names if name.split(".")[0] == "geosd"], meant


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement within a node. No import hides in an expression, as most nodes are."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from _statements(statement)


def _written(tree: ast.AST) -> list[str]:
    """A syntax tree in words that are the same in every version of Python that can parse it.

    Fields that are empty are left out, for newer versions have fields that older ones lack; so are
    statements that are a text and nothing else, as docstrings are.
    """
    words: list[str] = []

    def write(node: Any) -> None:
        if isinstance(node, ast.Constant):
            # repr depends on the version's table of characters
            words.append(f"Constant({ascii(node.value)})")
        elif isinstance(node, ast.AST):
            words.append(f"{type(node).__name__}(")
            for field in node._fields:
                value = getattr(node, field, None)
                if value not in (None, []) and field != "ctx":  # where a name stands says as much
                    words.append(f"{field}=")
                    write(value)
            words.append(")")
        elif isinstance(node, list):
            words.append("[")
            for item in node:
                if not _is_text(item):
                    write(item)
                    words.append(",")
            words.append("]")
        else:
            words.append(ascii(node))

    write(tree)
    return words


def _is_text(node: Any) -> bool:
    """Whether a node is a statement that is a text and nothing else."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)
