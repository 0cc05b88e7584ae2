"""A job of a step that leaves a manifest: its settings, its time, and what it writes last."""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.planned import PLAN
from geosd.config.run_folders import RunFolders
from geosd.files import remove_leftovers, sha256
from geosd.provenance.code import code_hashes
from geosd.provenance.manifest import MANIFEST, manifest, manifest_computed_by, write_manifest
from geosd.provenance.proof import MODEL_CARD


class StepJob:
    """A job, one run of a step, timed from here on.

    Attributes:
        settings: Exactly what the rule may read of params.yaml.
        draw: The draw of the base model that the job's run starts from.
    """

    def __init__(
        self,
        rule: str,
        params: Path,
        study: str,
        model: str | None = None,
        variant: str | None = None,
        *,
        seed: int | None = None,
        draw: int = 0,
        out: Path | None = None,
    ) -> None:
        """Start the clock and load the settings; the rule bears the name of the step's module.

        The draw follows from the seed where there is one. `out` is the folder that the job writes,
        where studies share it: a run of the workflow asks for a folder by its address.

        Raises:
            ConfigError: The job is one of a run, and would compute what has another address.
        """
        self._began = time.monotonic()
        self._rule = rule
        resolved = resolve_study(load(params), study)
        self.study = resolved
        self.draw = draw if seed is None else resolved.draw(seed)
        self.settings = settings(rule, resolved, model, variant, self.draw)
        if out is not None and PLAN in os.environ:
            _check_address(out, RunFolders(resolved).of_job(rule, model, variant, seed, self.draw))
        self._code = code_hashes(rule, self.settings)

    def identity(self, inputs: Mapping[Path, str], **more: Any) -> dict[str, Any]:
        """Identity of the job's resume states: code, packages, settings, inputs, and `more`.

        A part of `more` takes the place of one of the same name.
        """
        computed = manifest_computed_by(self._rule, self.settings)
        parts = {"settings": self.settings, "inputs": list(inputs.values())}
        return {**computed, **parts, **more}

    def write_manifest(
        self,
        out: Path,
        inputs: Iterable[Path] | Mapping[Path, str],
        outputs: Iterable[Path] | None = None,
        name: str = MANIFEST,
        **more: Any,
    ) -> None:
        """Write the job's manifest, with further keys of the step.

        Args:
            out: Folder of the manifest and of what the job wrote.
            inputs: As `geosd.provenance.manifest.manifest` takes them.
            outputs: The files that the job wrote; None: all in `out`, which is its own.
            name: Of the manifest, where several jobs write into one folder.
            more: Further keys.
        """
        seconds = time.monotonic() - self._began
        written = {}
        for path in files_of_job(out) if outputs is None else outputs:
            remove_leftovers(path)
            written[path.relative_to(out).as_posix()] = sha256(path)
        made = manifest(self._rule, inputs, self.settings, seconds, written, self._code)
        write_manifest(out / name, {**made, **more})


def _check_address(out: Path, address: str) -> None:
    """Refuse to write one thing under the address of another.

    The settings of a run are kept, so a difference is one of the files that an address depends on.
    """
    if out.as_posix() != address:
        raise ConfigError(
            f"{out}: this job would make what belongs into {address}. A file that decides the"
            " address, as one of a base model's folder, was edited after the run was planned.\n"
            "Hint: start the run again; it plans with the file as it is now."
        )


def files_of_job(out: Path) -> list[Path]:
    """The files that a job wrote into a folder of its own, without its manifest.

    A model card is written after the manifest; one that is there is of a run before.
    """
    kept = (MANIFEST, MODEL_CARD)
    return sorted(p for p in out.glob("[!.]*") if p.is_file() and p.name not in kept)
