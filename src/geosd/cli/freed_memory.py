"""How the C library's allocator treats the memory that a training step frees.

By default glibc gives large freed blocks back to the system, which fills the same pages with zeros
when the next layer asks for them: a tenth of a training step on a CPU.
"""

import ctypes
import sys

# Of mallopt(3): names of glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
MEGABYTE = 2**20


def keep_freed_memory() -> bool:
    """Make glibc's allocator keep freed blocks below 32 MB in this process, for its next tensors.

    Larger ones, such as logits over a real vocabulary, are given back as before. Returns whether
    the allocator took the settings; False where it is not glibc's.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {
        M_MMAP_THRESHOLD: 32 * MEGABYTE,  # the most that glibc allows
        M_TRIM_THRESHOLD: 2**31 - 1,
        M_TOP_PAD: 64 * MEGABYTE,
    }
    return all([mallopt(key, value) == 1 for key, value in settings.items()])
