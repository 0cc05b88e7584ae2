"""What `make doctor` sees of a real SLURM: settings, requests, and a node of each partition.

    python tests/slurm/prerequisites.py

Needs the cluster of tests/slurm/cluster.sh, whose GPUs are made up: jobs see them, torch does not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from study import SITE

from geosd.prerequisites import slurm
from geosd.prerequisites.slurm import check_slurm_clock, check_slurm_folder, check_slurm_gpus

SMALL = slurm.SlurmRequest(gpus=0, mem_mb=1000, minutes=5, threads=1)


def main() -> None:
    """Hold each check to what the made-up cluster is."""
    site = slurm.SlurmSite(**{name: SITE[name] for name in slurm.SlurmSite._fields})
    values = slurm.cluster_settings(slurm.run_slurm("scontrol", "show", "config").stdout)
    assert {check.state for check in slurm.check_slurm_settings(values, site, gpus=2)} == {"ok"}
    existing = slurm.run_slurm("sinfo", "--noheader", "--format=%R").stdout.split()
    assert slurm.check_partitions(["cpu", "gpu"], existing).state == "ok"
    assert slurm.check_partitions(["a100"], existing).state == "missing"
    with tempfile.TemporaryDirectory(dir=".") as folder:
        file = Path(folder, "site.yaml").resolve()
        file.write_text(yaml.safe_dump(SITE))
        for gpus, partition in ((0, "cpu"), (2, "gpu")):
            request = SMALL._replace(gpus=gpus)
            assert slurm.choose_partition(request, site, file) == partition
            assert slurm.check_slurm_request("train", request, site, partition).state == "ok"
            seen, words = slurm.slurm_node_report(request, site, partition, Path.cwd(), file)
            assert seen, words
            print(partition, seen)
            assert seen["host"] in ("n1", "n2", "n3")
            assert check_slurm_folder(partition, seen, file.read_text()).state == "ok"
            assert check_slurm_clock(partition, seen).state == "ok"
            assert seen["gpus"] == gpus
            if gpus:
                check = check_slurm_gpus(partition, gpus, seen)
                assert check.state == "missing" and "torch can use 0" in check.found, check
    refused = slurm.check_slurm_request("train", SMALL._replace(gpus=5), site, "gpu")
    assert refused.state == "missing", refused
    print(refused.found)


if __name__ == "__main__":
    main()
