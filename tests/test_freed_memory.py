import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
from geosd.freed_memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
address = torch.empty(4 * 2**20).data_ptr()  # 16 MB
(heap,) = [line for line in open("/proc/self/maps") if line.rstrip().endswith("[heap]")]
start, stop = (int(edge, 16) for edge in heap.split()[0].split("-"))
print(start <= address < stop)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
@pytest.mark.parametrize(("word", "in_heap"), [("keep", "True"), ("default", "False")])
def test_tensors_come_from_the_heap_and_not_from_pages_of_their_own(word, in_heap):
    command = [sys.executable, "-c", PROGRAM, word]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == in_heap
