"""The end of one of several processes: nothing is torn down that could still abort it.

Run as a program, this file is what each process does.
"""

import atexit
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from geosd.training.processes import end_process, init_processes

RANKS = runpy.run_path(str(Path(__file__).with_name("test_ranks.py")))


class AbortsInTeardown:
    """Aborts when the interpreter takes its module apart."""

    def __del__(self):
        """Abort."""
        os.abort()


def main(status):
    """Come together and end; what is registered for the end says so."""
    with init_processes() as (ranks, _):
        ranks.barrier()
    globals()["kept"] = AbortsInTeardown()
    atexit.register(print, "closed what was open")
    end_process(status)


@pytest.mark.parametrize("status", [0, 75])
def test_several_processes_end_without_the_interpreters_teardown(status, capfd):
    RANKS["launch"](__file__, status, status=status)
    assert capfd.readouterr().out.count("closed what was open") == 2


def test_a_process_alone_is_torn_down():
    alone = {name: value for name, value in os.environ.items() if name != "RANK"}
    ran = subprocess.run([sys.executable, __file__, "0"], env=alone, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["closed what was open"]
    assert ran.returncode == -signal.SIGABRT


if __name__ == "__main__":
    main(int(sys.argv[1]))
