"""The end of one of several processes: nothing is torn down that could still abort it.

Run as a program, this file is what each process does.
"""

import atexit
import os
import runpy
import subprocess
import sys
from pathlib import Path

from geosd.training.processes import end_process, init_processes

RANKS = runpy.run_path(str(Path(__file__).with_name("test_ranks.py")))


def main():
    """Come together, then end; a teardown of the interpreter would abort."""
    with init_processes() as (ranks, _):
        ranks.barrier()
    atexit.register(os.abort)
    print("all work is done")
    end_process()
    print("alone")


def test_processes_end_without_the_interpreters_teardown(capfd):
    RANKS["launch"](__file__)
    out = capfd.readouterr().out
    assert out.count("all work is done") == 2 and "alone" not in out


def test_a_process_alone_goes_on():
    alone = {name: value for name, value in os.environ.items() if name != "RANK"}
    ran = subprocess.run([sys.executable, __file__], env=alone, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "alone"
    assert ran.returncode != 0  # it was torn down


if __name__ == "__main__":
    main()
