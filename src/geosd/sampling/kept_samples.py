"""Finished samples of a job, kept as they come: a job that was cut off goes on from them."""

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from geosd.files import write_text
from geosd.problems.records import SampleRecord
from geosd.provenance.identity import differing_parts, identity_digests
from geosd.sampling.paused_part import PausedPart

logger = logging.getLogger(__name__)


Kept = TypeVar("Kept")


class KeptSamples(Generic[Kept]):
    """The finished samples of a job, by their places among all that it draws.

    A file holds, line by line: the SHA-256 of all further lines; the job's identity, the threads
    and the sampler's record; and each sample behind its place.

    Args:
        scratch: The job's scratch folder.
        identity: Everything that makes the job what it is, by name: settings, seed, hashes of its
            inputs, digest of its code, versions of packages. Samples of a job of another identity
            are set aside, as `samples.other`, and kept until this job is complete.
        row_of: Makes a sample again of the fields that are kept of it, by their names.
    """

    def __init__(
        self, scratch: Path, identity: Any, row_of: Callable[..., Kept] = SampleRecord
    ) -> None:
        """Remember where the samples lie and whose they must be."""
        self.row_of = row_of
        self.folder, self.aside = scratch / "samples", scratch / "samples.other"
        self.digests = identity_digests(identity)
        self._files, self._records = 0, []

    def paused_part(self) -> PausedPart:
        """Where the job's part that is under way is kept when it is asked to stop."""
        return PausedPart(self.folder, self.digests)

    def load(self) -> dict[int, Kept]:
        """The samples that are kept, by place; none of another job, and none of a damaged file.

        The process then computes in as many threads as the job began with: their number decides the
        last bits of sums.
        """
        rows: dict[int, Kept] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            self._files = 1 + int(path.stem)
            try:
                digest, _, lines = path.read_bytes().partition(b"\n")
                if hashlib.sha256(lines).hexdigest().encode() != digest:
                    raise ValueError("its lines have another hash than the first line says")
                head, *samples = map(json.loads, lines.splitlines())
            except ValueError as error:
                aside = self.folder.with_name(f"samples-{path.stem}.damaged")
                path.replace(aside)
                logger.warning(
                    f"{path} does not hold what was written: {error}. Its samples are drawn again,"
                    f" with the same bytes.\nHint: the file is {aside.name} now; look at the disk,"
                    " and remove it."
                )
                continue
            if head["identity"] != self.digests:
                shutil.rmtree(self.aside, ignore_errors=True)
                self.folder.replace(self.aside)
                logger.warning(
                    f"{self.folder} is of a job with other"
                    f" {differing_parts(self.digests, head['identity'])}: it is {self.aside.name}"
                    " now, and this job begins anew."
                )
                return {}
            if not rows:
                torch.set_num_threads(head["threads"])
            rows |= {place: self.row_of(**row) for place, row in samples}
            self._note(head["sampler"])
        return rows

    def keep(self, rows: Mapping[int, Kept], sampler: dict[str, Any]) -> None:
        """Keep samples by place; `sampler` is the record of the sampler that drew them."""
        self._note(json.loads(json.dumps(sampler)))
        threads = torch.get_num_threads()
        head = {"identity": self.digests, "threads": threads, "sampler": sampler}
        lines = [head, *([place, asdict(row)] for place, row in rows.items())]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        digest = hashlib.sha256(text.encode()).hexdigest()
        write_text(self.folder / f"{self._files:06}.jsonl", f"{digest}\n{text}")
        self._files += 1

    def record(self) -> dict[str, Any]:
        """The record of the sampler, with `earlier` ones where another machine's was different."""
        *earlier, last = self._records
        return {**last, "earlier": earlier} if earlier else last

    def clear(self) -> None:
        """Forget the samples: the job is complete."""
        for folder in (self.folder, self.aside):
            shutil.rmtree(folder, ignore_errors=True)

    def _note(self, sampler: dict[str, Any]) -> None:
        """Move a record to the end of those that are known."""
        self._records = [known for known in self._records if known != sampler] + [sampler]
