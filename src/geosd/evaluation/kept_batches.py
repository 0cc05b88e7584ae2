"""Measurements that a kill does not undo: what each batch gave is kept in the job's scratch folder.

The jobs of the rules `states` and `alignment` keep a batch of rollouts or a checkpoint at a time.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from geosd.preemption import PreemptionError
from geosd.provenance.identity import identity_digests
from geosd.sampling.paused_part import PausedPart, never_paused


class KeptBatches:
    """Tensors by the names of the batches that they were computed from.

    Args:
        folder: Where they are kept, and nothing else: `clear` removes it. The launcher of a job has
            files in the job's scratch folder. None keeps none.
        identity: What makes the job what it is, see `KeptSamples`; tensors of another are computed
            anew.
        stop_requested: Called before each batch is computed; true ends the job there.
    """

    def __init__(
        self,
        folder: Path | None = None,
        identity: Any = None,
        stop_requested: Callable[[], bool] = never_paused,
    ) -> None:
        self.folder, self.stop_requested = folder, stop_requested
        self.digests = identity_digests(identity)

    def made(self, name: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The tensors of a batch, as they are kept, or computed and then kept.

        Raises:
            PreemptionError: `stop_requested`, before a batch that is not kept.
        """
        part = None if self.folder is None else PausedPart(self.folder / name, self.digests)
        kept = None if part is None else part.load(name)
        if kept is not None:
            return kept[1]
        if self.stop_requested():
            raise PreemptionError(
                f"asked to stop before batch {name}; start again to go on from there"
            )
        tensors = compute()
        if part is not None:
            part.save(name, {}, tensors)
        return tensors

    def clear(self) -> None:
        """Forget what is kept: the job is complete."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
