"""Checkpoints that the repository ships: draws of base models, each file pinned by its SHA-256.

    base_models/<model>/<draw>/   a draw of a model, as Hugging Face programs write it
    base_models/SHA256SUMS        the hash of each file, as sha256sum writes and checks it

Draws are pretrainings of one recipe, each with a seed of its own. The workflow reads the hashes at
each start, so this module imports no torch.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from geosd.files import sha256

SHIPPED = Path("base_models")
"""Folder of all shipped checkpoints, from the root of the repository, where programs run."""
SUMS = SHIPPED / "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_HINT = (
    f"Hint: `git checkout -- {SHIPPED}` brings the committed files back; `make base-models` makes"
    " models and hashes anew."
)


class ShippedCheckpointError(ValueError):
    """A shipped checkpoint whose files are not those that SHA256SUMS names."""


def is_shipped_base_model(folder: str | Path) -> bool:
    """Whether a folder of a released checkpoint is one that the repository ships.

    Example:
        >>> is_shipped_base_model("base_models/mini-qwen3"), is_shipped_base_model("/data/qwen3")
        (True, False)
    """
    return SHIPPED in Path(folder).parents


def shipped_base_model_files(folder: str | Path) -> dict[str, str]:
    """The files of a draw's folder -> SHA-256; ShippedCheckpointError if SHA256SUMS lacks them."""
    if not SUMS.is_file():
        raise ShippedCheckpointError(f"{SUMS} is absent, which pins {folder}.\n{_HINT}")
    inside = PurePosixPath(Path(folder).relative_to(SHIPPED).as_posix())
    files: dict[str, str] = {}
    for number, line in enumerate(SUMS.read_text(encoding="utf-8").splitlines(), start=1):
        if (match := _LINE.fullmatch(line)) is None:
            raise ShippedCheckpointError(
                f"{SUMS}:{number}: {line[:60]!r} is no line of sha256sum: 64 hexadecimal digits,"
                f" two blanks and a name.\n{_HINT}"
            )
        path = PurePosixPath(match[2])
        if path.parent == inside:
            files[path.name] = match[1]
    if not files:
        raise ShippedCheckpointError(f"{SUMS} names no file of {folder}.\n{_HINT}")
    return files


def shipped_base_model_draws(folder: str | Path) -> int:
    """How many draws of a model SHA256SUMS pins, by the model's folder; 0 where it has none."""
    if not SUMS.is_file():
        return 0
    inside = PurePosixPath(Path(folder).relative_to(SHIPPED).as_posix())
    folders = _pinned_folders(SUMS.read_text(encoding="utf-8"))
    return sum(folder.parent == inside for folder in folders)


@lru_cache(maxsize=1)
def _pinned_folders(sums: str) -> frozenset[PurePosixPath]:
    """The folders of the files that SHA256SUMS names; 45 studies ask for them in turn."""
    matches = map(_LINE.fullmatch, sums.splitlines())
    return frozenset(PurePosixPath(match[2]).parent for match in matches if match)


def check_shipped_base_model(folder: str | Path, pinned: Mapping[str, str]) -> None:
    """Check that a folder has the pinned files and no others; ShippedCheckpointError if not."""
    folder = Path(folder)
    present = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted({*present, *pinned}):
        if name not in pinned:
            problem = f"{SUMS} does not name it"
        elif name not in present:
            problem = "it is missing"
        elif (got := sha256(folder / name)) != pinned[name]:
            problem = f"its SHA-256 is {got}, in {SUMS} it is {pinned[name]}"
        else:
            continue
        raise ShippedCheckpointError(f"{folder / name}: {problem}.\n{_HINT}")
