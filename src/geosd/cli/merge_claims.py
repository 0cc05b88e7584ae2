"""Judge every claim once, from the ledgers of several studies: claims_all.md and claims_all.csv.

No study's rule: it reads what several studies wrote, and `make ledger` runs it.
"""

from __future__ import annotations

from pathlib import Path

from geosd.claims.ledger import ledger
from geosd.claims.merge import merge_ledgers
from geosd.cli import begin
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.provenance.proof import prove
from geosd.reporting.claims_page import write_ledger


def main(out: Path, ledgers: tuple[Path, ...] = (), params: Path = Path("params.yaml")) -> None:
    """Merge the ledgers of claims of several studies: each claim by the study designed for it.

    Args:
        out: Folder of `claims_all.md` and `claims_all.csv`.
        ledgers: The `claims.csv` of studies of different kinds; claims of other kinds are not
            tested.
        params: The configuration, which knows the kind of each study.
    """
    loaded = load(params)

    def kind_of(study: str) -> str:
        return settings_of("claims", resolve(loaded, study))["kind"]

    prove(ledgers)
    written = write_ledger(merge_ledgers(ledger(), ledgers, kind_of), None, out, name="claims_all")
    print("\n".join(map(str, written)))


if __name__ == "__main__":
    begin(main)
