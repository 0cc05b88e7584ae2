"""Tensors that say cuda:0 and hold their values on the CPU, and a record of what they were asked.

A kernel that is given a tensor of the CPU beside one of a GPU fails on a real GPU; here it is
computed and noted as mixed. What would make the host wait for the device is noted too.

The process must have been started with the library of device_guard.cpp in LD_PRELOAD. It believes
in the GPU from the import of this module on, which comes before that of geosd.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

CUDA = torch.device("cuda:0")
CPU = torch.device("cpu")
WAITS = {
    "bincount",
    "equal",
    "is_nonzero",
    "item",
    "_local_scalar_dense",
    "masked_select",
    "nonzero",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
}
"""Operations whose result the host needs, or whose shape depends on values."""
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
"""Operations that take indices from the CPU also on a real GPU."""

Place = tuple[str, str]
"""(operation, file:line of the package that called it)."""


@dataclass
class Record:
    """What was asked of the pretended GPU since it was emptied.

    Attributes:
        mixed: Kernels that were given tensors of both devices.
        waits: What made the host wait, by place.
        kernels: How many kernels were started.
    """

    mixed: Counter[Place] = field(default_factory=Counter)
    waits: Counter[Place] = field(default_factory=Counter)
    kernels: int = 0

    def empty(self) -> None:
        """Begin anew."""
        self.mixed.clear()
        self.waits.clear()
        self.kernels = 0


RECORD = Record()


class GpuTensor(torch.Tensor):
    """A tensor of the pretended GPU; `held` has its values."""

    @staticmethod
    def __new__(cls, held: torch.Tensor, requires_grad: bool = False) -> GpuTensor:
        assert type(held) is torch.Tensor, type(held)
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=CUDA,
            requires_grad=requires_grad,
        )
        made.held = held
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})

    def __repr__(self) -> str:
        return f"GpuTensor({self.held!r})"

    def __deepcopy__(self, memo: dict) -> GpuTensor:
        if id(self) not in memo:
            copied = GpuTensor(self.held.clone()).requires_grad_(self.requires_grad)
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
        return memo[id(self)]

    @property
    def data(self) -> torch.Tensor:
        return torch._C.TensorBase.data.__get__(self)

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        torch._C.TensorBase.data.__set__(self, value)
        self.held = held_by(value)

    def tolist(self) -> Any:
        RECORD.waits["tolist", caller()] += 1
        return self.held.tolist()

    def data_ptr(self) -> int:
        return self.held.data_ptr()


class PretendedGpu(TorchDispatchMode):
    """Inside, operations that name the device cuda make and take `GpuTensor`s."""

    def __enter__(self) -> PretendedGpu:
        torch._C._set_only_lift_cpu_tensors(True)
        return super().__enter__()

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        torch._C._set_only_lift_cpu_tensors(False)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func: Any, args: tuple, kwargs: dict) -> Any:
    """Compute an operation on the values, and note what it would do on a GPU."""
    name = func._schema.name.split("::")[1]
    if name in ("_to_copy", "to"):
        return moved(func, args, kwargs)
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
    on_gpu = [each for each in tensors if isinstance(each, GpuTensor)]
    if name in WAITS and on_gpu:
        RECORD.waits[name, caller()] += 1
    if name in ("item", "_local_scalar_dense"):
        return func(held_by(args[0]))
    if name == "copy_":
        func(held_by(args[0]), held_by(args[1]), *args[2:], **kwargs)
        if isinstance(args[1], GpuTensor) and not isinstance(args[0], GpuTensor):
            RECORD.waits[name, caller()] += 1
        return args[0]
    if not on_gpu and not names_gpu(kwargs.get("device")):
        return func(*args, **kwargs)
    note(name, args, kwargs, [each for each in tensors if not isinstance(each, GpuTensor)])
    return on_values(func, args, kwargs, on_gpu)


def note(name: str, args: tuple, kwargs: dict, on_cpu: list[torch.Tensor]) -> None:
    """Note a kernel of the GPU: tensors of the CPU among its arguments, and waits for its shape."""
    RECORD.kernels += 1
    for each in on_cpu:
        may_be_there = name in INDEXING and each is not args[0]
        if each.dim() and not may_be_there:
            RECORD.mixed[name, caller()] += 1
    if name == "repeat_interleave" and kwargs.get("output_size") is None:
        RECORD.waits[name, caller()] += 1
    if name in INDEXING:
        fills_with_scalar = name != "index" and args[2].dim() == 0
        masks = [each for each in args[1] if each is not None and each.dtype == torch.bool]
        if masks and not fills_with_scalar:
            RECORD.waits[f"{name} by a mask", caller()] += 1


def on_values(func: Any, args: tuple, kwargs: dict, on_gpu: list[GpuTensor]) -> Any:
    """The result of an operation on the values, of the pretended GPU again."""
    given = dict(kwargs)
    if given.get("device") is not None:
        given["device"] = CPU
    if "pin_memory" in given:
        given["pin_memory"] = False
    args, given = tree_map(held_by, args), tree_map(held_by, given)
    if func is torch.ops.aten.mm.dtype:  # of halves into float32, which no CPU has
        result = torch.mm(args[0].float(), args[1].float())
    else:
        result = func(*args, **given)
    known = {id(each.held): each for each in on_gpu} if func._schema.is_mutable else {}

    def wrap(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, GpuTensor):
            return value
        return known[id(value)] if id(value) in known else GpuTensor(value)

    if isinstance(result, (list, tuple)):
        return type(result)(map(wrap, result))
    return wrap(result)


def moved(func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
    """A tensor with another type or on another device."""
    source = args[0]
    named = [each for each in (*args[1:], kwargs.get("device")) if isinstance(each, torch.device)]
    to_gpu = names_gpu(named[0]) if named else isinstance(source, GpuTensor)

    def on_cpu(value: Any) -> Any:
        return CPU if isinstance(value, torch.device) else held_by(value)

    given = {name: on_cpu(value) for name, value in kwargs.items()}
    result = func(*map(on_cpu, args), **given)
    if isinstance(source, GpuTensor) and not to_gpu:
        RECORD.waits["to the CPU", caller()] += 1
    if to_gpu and isinstance(source, GpuTensor) and result is source.held:
        return source
    return GpuTensor(result) if to_gpu else result


def held_by(value: Any) -> Any:
    """The values behind a tensor of the pretended GPU; anything else is itself."""
    return value.held if isinstance(value, GpuTensor) else value


def names_gpu(device: Any) -> bool:
    """Whether an argument `device` is the GPU."""
    return device is not None and torch.device(device).type == "cuda"


def caller() -> str:
    """The line of the package that is being computed, as `room/file.py:line`."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if "/geosd/" in path and "/site-packages/" not in path and "/tests/" not in path:
            return f"{path.rpartition('/geosd/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return "another package"


def module_to_gpu(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """`Module.to` for the pretended GPU: parameters that are tied stay one."""
    device = args[0] if args and isinstance(args[0], (str, torch.device)) else kwargs.get("device")
    if not names_gpu(device):
        return _module_to(module, *args, **kwargs)
    made: dict[int, torch.nn.Parameter] = {}
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is None or isinstance(parameter.data, GpuTensor):
                continue
            if id(parameter) not in made:
                held = GpuTensor(parameter.detach().clone())
                made[id(parameter)] = torch.nn.Parameter(held, parameter.requires_grad)
            each._parameters[name] = made[id(parameter)]
        for name, buffer in each._buffers.items():
            if buffer is not None and not isinstance(buffer, GpuTensor):
                each._buffers[name] = GpuTensor(buffer.detach().clone())
    return module


_module_to = torch.nn.Module.to


def install() -> None:
    """Have this process believe in the GPU; what cannot be pretended is put aside."""
    torch.nn.Module.to = module_to_gpu
    torch.cuda._lazy_init = lambda: None
    torch.autograd.set_multithreading_enabled(False)  # a thread of its own would have no mode
    torch.inference_mode = torch.no_grad  # under inference mode such tensors cannot be detached


install()
