import sys

import pytest
from cases import python

PROGRAM = """
import torch
from geosd.cli.freed_memory import keep_freed_memory

def in_heap(tensor):
    (heap,) = [line for line in open("/proc/self/maps") if line.rstrip().endswith("[heap]")]
    start, stop = (int(edge, 16) for edge in heap.split()[0].split("-"))
    return start <= tensor.data_ptr() < stop

first = torch.empty(4 * 2**20)  # 16 MB; it stays, because its end would move glibc's own bounds
print(in_heap(first), keep_freed_memory(), in_heap(torch.empty(4 * 2**20)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_tensors_come_from_the_heap_and_not_from_pages_of_their_own():
    done = python("-c", PROGRAM, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
