# SPDX-License-Identifier: MIT
"""The part of PyTorch that refrain.torch uses, on NumPy. Streams of its GPUs
run when a test says so, so a copy reads its source as late as possible."""

import sys
import types

import numpy as np


class Device:
    """Stands for torch.device."""

    def __init__(self, name):
        name = getattr(name, 'name', name)
        self.name = name
        self.type, _, number = name.partition(':')
        self.index = int(number) if number else None


class Stream:
    """A stream of a GPU: operations, in order."""

    def __init__(self):
        self.waiting = []

    def run(self, most=1 << 30):
        """Run up to `most` operations."""
        while self.waiting and most > 0:
            self.waiting.pop(0)()
            most -= 1


class Event:
    """Stands for torch.cuda.Event."""

    def __init__(self):
        self.stream = None
        self.done = False

    def _happen(self):
        self.done = True

    def record(self, stream):
        """Record the event: it happens when the stream comes to it."""
        self.stream = stream
        stream.waiting.append(self._happen)

    def query(self):
        """Has the event happened?"""
        return self.done

    def synchronize(self):
        """Run the stream up to the event."""
        while not self.done:
            self.stream.run(1)


class Cuda:
    """Stands for torch.cuda with two GPUs, the first of which is current."""

    Event = Event

    def __init__(self):
        self.streams = [Stream(), Stream()]

    def current_stream(self, device=None):
        """Return the current stream of the device."""
        return self.streams[getattr(device, 'index', None) or 0]


class Tensor:
    """Stands for torch.Tensor. The content of a tensor on a GPU is undefined
    until its stream has run."""

    def __init__(self, array, torch, pinned=False):
        self.array, self.torch, self.pinned = array, torch, pinned
        self.shape, self.dtype = array.shape, array.dtype

    def copy_(self, source):
        """Copy at once."""
        self.array[...] = source.array
        return self

    def to(self, device, non_blocking=False):
        """Return a copy on the device. It contains garbage until the copy was
        made."""
        copy = Tensor(np.full_like(self.array, 99), self.torch)
        if device.type == 'cuda' and non_blocking:
            stream = self.torch.cuda.current_stream(device)
            # like a real GPU, keep only the address and no reference
            source = self.array.ctypes.data

            def run():
                copy.array[...] = _at(source, copy.array)

            stream.waiting.append(run)
            return copy
        return copy.copy_(self)


def _at(address, like):
    kind = np.ctypeslib.ctypes.c_char * like.nbytes
    return np.frombuffer(kind.from_address(address), like.dtype).reshape(
        like.shape)


def module():
    """Return modules by their names, for sys.modules."""
    torch = types.ModuleType('torch')
    torch.device, torch.cuda = Device, Cuda()
    torch.from_dlpack = lambda o: Tensor(np.from_dlpack(o), torch)
    torch.as_tensor = lambda a: Tensor(np.asarray(a), torch)
    torch.empty = lambda shape, dtype, pin_memory: Tensor(
        np.empty(shape, dtype), torch, pin_memory)
    torch.distributed = types.SimpleNamespace(is_available=lambda: False)
    torch.utils = types.ModuleType('torch.utils')
    torch.utils.data = types.ModuleType('torch.utils.data')
    torch.utils.data.IterableDataset = object
    torch.utils.data.get_worker_info = lambda: None
    return {'torch': torch, 'torch.utils': torch.utils,
            'torch.utils.data': torch.utils.data}


def install(monkeypatch):
    """Install the modules until the test ends. Return (torch,
    refrain.torch)."""
    import refrain
    for name, part in module().items():
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.delitem(sys.modules, 'refrain.torch', raising=False)
    monkeypatch.setattr(refrain, 'torch', None, raising=False)
    import refrain.torch as ours
    monkeypatch.setitem(sys.modules, 'refrain.torch', ours)
    return sys.modules['torch'], ours
