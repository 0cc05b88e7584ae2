"""Hashes of files: of a checkpoint's, and of each result against the manifest of its step.

A step proves what it reads before it computes. A file without a manifest near it was not made by
a step; it is taken as it is, and its reader checks its records alone.
"""

from collections.abc import Iterable
from pathlib import Path

from geosd.files import LOADED, WEIGHTS, DamagedFileError, remake_file_hint, sha256
from geosd.provenance.checkpoint_files import loaded_checkpoint_files
from geosd.provenance.manifest import MANIFEST, read_manifest

MODEL_CARD = "README.md"


SNAPSHOTS = "snapshots"
"""Folder of a run's weights on the way; the run's manifest speaks for it."""


class UnprovenFileError(DamagedFileError):
    """A file that is not the one that the manifest of its step lists."""


def prove(files: Iterable[Path]) -> dict[Path, str]:
    """Compare files with the manifests of the steps that made them; each file -> its SHA-256.

    Raises:
        UnprovenFileError: A file has another hash than its manifest lists, or is not listed.
        DamagedManifestError: A manifest is not whole.
        FileNotFoundError: A file is missing.
    """
    return {file: _proven(file) for file in files}


def prove_checkpoint(folder: Path) -> dict[Path, str]:
    """Compare a checkpoint's files that a program may load with its manifest; the weights' SHA-256.

    Raises:
        UnprovenFileError: As `prove`; or a file that the manifest lists is missing.
    """
    files = set(loaded_checkpoint_files(folder))
    if (folder / MANIFEST).exists():
        listed = {folder / name for name in read_manifest(folder)["outputs"] if "/" not in name}
        files |= {path for path in listed if path.suffix in LOADED}
    weights = folder / WEIGHTS
    proven = prove([weights, *sorted(files - {weights, folder / MANIFEST})])
    return {weights: proven[weights]}


def prove_run(folder: Path, weights: Path, **run: object) -> None:
    """Compare the manifest in a folder of samples with the run that they are taken for.

    They must be of the checkpoint's weights, and `run` has keys of the manifest and their values:
    model, seed, draw.

    Raises:
        UnprovenFileError: They are of another run, or of weights that lie there no more.
        DamagedManifestError: A manifest is not whole.
    """
    if not (folder / MANIFEST).exists():
        return
    made = read_manifest(folder)
    others = [f"{key} {made.get(key)}" for key, value in run.items() if made.get(key) != value]
    recorded = made["inputs"].get(str(weights))
    if others:
        problem = f"was made for {', '.join(others)}"
    elif recorded is None:
        problem = f"was not made from {weights}"
    elif (weights.parent / MANIFEST).exists() and recorded != (
        read_manifest(weights.parent)["outputs"].get(weights.name)
    ):
        problem = f"was made from other weights than {weights}"
    else:
        return
    expected = ", ".join(f"{key} {value}" for key, value in run.items())
    raise UnprovenFileError(
        f"{folder / MANIFEST}: {problem}; expected {expected}.\n{remake_file_hint(folder)}"
    )


def _proving_manifest(file: Path) -> tuple[Path, str] | None:
    """Folder and name of a file's manifest: its own, its folder's, or its run's; or None."""
    run = file.parent.parent if file.parent.name == SNAPSHOTS else file.parent
    candidates = [(file.parent, f"{file.stem}.{MANIFEST}"), (run, MANIFEST)]
    return next(((folder, name) for folder, name in candidates if (folder / name).exists()), None)


def proven_hash(file: Path) -> str | None:
    """The SHA-256 of a file by the manifest of the step that made it, where a manifest lists it."""
    manifest = _proving_manifest(file)
    if manifest is None:
        return None
    folder, name = manifest
    return read_manifest(folder, name)["outputs"].get(file.relative_to(folder).as_posix())


def _proven(file: Path) -> str:
    manifest = _proving_manifest(file)
    if manifest is None:
        return sha256(file)
    folder, name = manifest
    recorded = proven_hash(file)
    if recorded is None:
        problem = "does not list it"
    elif not file.exists():
        problem = "lists it, and it is missing"
    elif (got := sha256(file)) != recorded:
        problem = f"expects the SHA-256 {recorded}, not {got}"
    else:
        return got
    # Of a folder's own manifest: its job may have written files for which no rule asks by name.
    hint = remake_file_hint(folder if name == MANIFEST else file)
    raise UnprovenFileError(
        f"{file}: not the file that its step wrote: {folder / name} {problem}.\n{hint}"
    )
