"""A buffer in one process's memory that another process reads where it lies.

On a GPU it is CUDA's inter-process memory: the reader's address of the same bytes of the card. On a
CPU it is a file of shared memory. A handle is of plain numbers and bytes, so that it can be sent by
any means; no object is unpickled.

The buffer has to live, and must not change, until each reader has let go of it.
"""

import torch
from torch import Tensor

Handle = list[int | bytes | bool]
"""What a reader needs to find a buffer."""
CPU = "cpu"


def buffer_device_name(device: torch.device) -> str:
    """The name of a device that all processes know it by: the card's UUID, or "cpu"."""
    if device.type == "cpu":
        return CPU
    return str(torch.cuda.get_device_properties(device).uuid)


def share_buffer(buffer: Tensor) -> Handle:
    """Open a whole buffer, of one dimension, to one reader; the handle that the reader needs.

    On a GPU what has been written to it so far is waited for.
    """
    storage = buffer.untyped_storage()
    if buffer.device.type == "cpu":
        return list(storage._share_filename_cpu_())
    torch.cuda.current_stream(buffer.device).synchronize()
    _, *rest = storage._share_cuda_()  # the first is this process's number of the device
    return rest


def open_shared(handle: Handle, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The buffer behind a handle, on the device that it was shared on; each handle is opened once.

    Raises:
        RuntimeError: The memory cannot be opened: it is this process's own, or another machine's.
    """
    if device.type == "cpu":
        storage = torch.UntypedStorage._new_shared_filename_cpu(*handle)
    else:
        torch.cuda.init()
        storage = torch.UntypedStorage._new_shared_cuda(device.index, *handle)
    return torch.empty(0, dtype=dtype, device=device).set_(storage)


def collect_shared_buffers(device: torch.device) -> None:
    """Free what this process has shared on a device and its readers have let go of."""
    if device.type == "cuda":
        torch.cuda.ipc_collect()
