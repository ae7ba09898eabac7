# SPDX-License-Identifier: Apache-2.0
"""Random programs of views and writes, run on the CPU and on the device: all tensors must be equal after them.

    PYTHONPATH=build/release/python VENV/bin/python tests/python/torch_view_programs.py [--first=SEED] [--count=N] [--device=tpu]

A program begins with one or two tensors, and each of its steps makes a view of some tensor, writes to one, or reads one.
What the CPU refuses is left out. Prints the lines of the programs that differ.
"""

import argparse
import random
import sys
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch

VIEWS = ("select", "slice", "slice", "transpose", "permute", "movedim", "diagonal", "expand", "unfold", "unsqueeze", "squeeze", "view",
         "reshape", "flatten", "split", "chunk", "unbind", "as_strided", "dtype", "real", "imag", "view_as_real", "view_as_complex", "conj",
         "detach", "t", "narrow", "alias", "neg_view", "resolve_conj", "contiguous", "swapaxes", "unflatten", "data", "mT", "set_data",
         "t_", "transpose_", "squeeze_", "unsqueeze_")
WRITES = ("add_", "mul_", "fill_", "copy_", "zero_", "setitem", "setitem", "from", "iadd_item", "index_fill_", "masked_fill_", "resize_")
DTYPES = (torch.float32, torch.float32, torch.int32, torch.int64, torch.complex64, torch.float64, torch.int16, torch.uint8, torch.complex128)
BITS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Step(NamedTuple):
    """What a step does to the list of tensors; `text` shows it."""

    text: str
    apply: Callable[[List[torch.Tensor]], Any]


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of a tensor have one place."""
    if tensor.numel() < 2:
        return False
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    places = torch.arange(last + 1).as_strided(tensor.shape, tensor.stride())
    return bool(places.unique().numel() != places.numel())


class Generator:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def start(self) -> List[torch.Tensor]:
        result = []
        for _ in range(self.random.randint(1, 2)):
            shape = [self.random.choice((1, 2, 3, 4, 6)) for _ in range(self.random.randint(1, 3))]
            dtype = self.random.choice(DTYPES)
            count = 1
            for size in shape:
                count *= size
            value = torch.arange(1, count + 1)
            if dtype.is_complex:
                result.append(torch.complex(value.double(), -value.double() * 0.5).to(dtype).reshape(shape))
            else:
                result.append(value.to(dtype).reshape(shape))
        return result

    def dim(self, t: torch.Tensor) -> int:
        return self.random.randrange(-t.dim(), t.dim()) if t.dim() else 0

    def view(self, tensors: List[torch.Tensor]) -> Step:
        n = self.random.randrange(len(tensors))
        t, kind, pick = tensors[n], self.random.choice(VIEWS), self.random
        dim = self.dim(t)
        size = t.shape[dim] if t.dim() else 1
        args: Tuple[Any, ...] = ()
        if kind == "select":
            args = (dim, pick.randrange(-size, size) if size else 0)
        elif kind == "slice":
            begin = pick.randrange(0, size + 1)
            end, step = pick.randrange(begin, size + 1), pick.choice((1, 1, 2, 3))
            index = (Ellipsis, slice(begin, end, step)) if dim % max(t.dim(), 1) == t.dim() - 1 else (slice(begin, end, step),)
            return Step(f"t{n}[{index}]", lambda ts: ts.append(ts[n][index]))
        elif kind in ("transpose", "swapaxes"):
            args = (dim, self.dim(t))
        elif kind in ("t_", "transpose_", "squeeze_", "unsqueeze_"):
            args = {"t_": (), "transpose_": (dim, self.dim(t)), "squeeze_": (), "unsqueeze_": (pick.randint(-t.dim() - 1, t.dim()),)}[kind]
            return Step(f"t{n}.{kind}{args}", lambda ts: getattr(ts[n], kind)(*args))
        elif kind == "permute":
            args = (pick.sample(range(t.dim()), t.dim()),)
        elif kind == "movedim":
            args = (dim, self.dim(t))
        elif kind == "diagonal":
            args = (pick.randint(-1, 1), *(pick.sample(range(t.dim()), 2) if t.dim() > 1 else (0, 1)))
        elif kind == "expand":
            args = ([pick.choice((1, 2))] * pick.randint(0, 1) + [pick.choice((2, 3)) if s == 1 else -1 for s in t.shape],)
        elif kind == "unfold":
            args = (dim, pick.randint(1, max(size, 1)), pick.randint(1, 3))
        elif kind == "unsqueeze":
            args = (pick.randint(-t.dim() - 1, t.dim()),)
        elif kind == "squeeze":
            args = (dim,) if pick.random() < 0.5 else ()
        elif kind in ("view", "reshape"):
            args = (pick.choice(([-1], [2, -1], [-1, 2], [1, -1], [3, -1], [2, 2, -1], list(t.shape))),)
        elif kind == "split":
            args = (pick.randint(1, 3), dim)
            k = pick.randint(0, 2)
            return Step(f"t{n}.split{args}[{k}]", lambda ts: ts.append(ts[n].split(*args)[k]))
        elif kind in ("chunk", "unbind"):
            args = (pick.randint(1, 3), dim) if kind == "chunk" else (dim,)
            k = pick.randint(0, 1)
            return Step(f"t{n}.{kind}{args}[{k}]", lambda ts: ts.append(getattr(ts[n], kind)(*args)[k]))
        elif kind == "as_strided":
            rank = pick.randint(1, 2)
            args = ([pick.randint(1, 3) for _ in range(rank)], [pick.randint(1, 3) for _ in range(rank)], pick.randint(0, 2))
        elif kind == "dtype":
            dtype = pick.choice(BITS)
            return Step(f"t{n}.view({dtype})", lambda ts: ts.append(ts[n].view(dtype)))
        elif kind in ("real", "imag"):
            return Step(f"t{n}.{kind}", lambda ts: ts.append(getattr(ts[n], kind)))
        elif kind in ("view_as_real", "view_as_complex"):
            kind = "view_as_real" if t.dtype == torch.float16 else kind  # the device has no complex numbers of these
            return Step(f"torch.{kind}(t{n})", lambda ts: ts.append(getattr(torch, kind)(ts[n])))
        elif kind == "narrow":
            begin = pick.randint(0, size)
            args = (dim, begin, pick.randint(0, size - begin))
        elif kind == "alias":
            return Step(f"alias(t{n})", lambda ts: ts.append(torch.ops.aten.alias(ts[n])))
        elif kind == "neg_view":
            return Step(f"_neg_view(t{n})", lambda ts: ts.append(torch._neg_view(ts[n])))
        elif kind == "unflatten":
            args = (dim, pick.choice(([-1, 1], [2, -1], [1, -1])))
        elif kind in ("data", "mT"):
            return Step(f"t{n}.{kind}", lambda ts: ts.append(getattr(ts[n], kind)))
        elif kind == "set_data":
            m = pick.randrange(len(tensors))
            if any(x.is_conj() or x.is_neg() for x in (t, tensors[m])):  # PyTorch refuses it on all its devices but a few
                m = n

            def assign(ts: List[torch.Tensor]) -> None:
                ts[n].data = ts[m]

            return Step(f"t{n}.data = t{m}", assign)
        return Step(f"t{n}.{kind}{args}", lambda ts: ts.append(getattr(ts[n], kind)(*args)))

    def write(self, tensors: List[torch.Tensor]) -> Optional[Step]:
        n = self.random.randrange(len(tensors))
        t, kind, pick = tensors[n], self.random.choice(WRITES), self.random
        if overlaps(t):
            return None
        number = pick.randint(1, 5)
        dim = self.dim(t)
        if kind in ("add_", "mul_", "fill_"):
            return Step(f"t{n}.{kind}({number})", lambda ts: getattr(ts[n], kind)(number))
        if kind == "zero_":
            return Step(f"t{n}.zero_()", lambda ts: ts[n].zero_())
        if kind == "copy_":
            count = t.numel()
            return Step(f"t{n}.copy_(arange)", lambda ts: ts[n].copy_(torch.arange(count).reshape(ts[n].shape).to(ts[n].device)))
        if kind == "from":
            m = pick.randrange(len(tensors))
            return Step(f"t{n}.copy_(t{m}.clone())", lambda ts: ts[n].copy_(ts[m].clone()))
        if kind == "index_fill_":
            return Step(f"t{n}.index_fill_({dim}, [0], {number})",
                        lambda ts: ts[n].index_fill_(dim, torch.tensor([0], device=ts[n].device), number))
        if kind == "masked_fill_":
            return Step(f"t{n}.masked_fill_(t{n} == {number}, 9)", lambda ts: ts[n].masked_fill_(ts[n] == number, 9))
        if kind == "resize_":
            if pick.random() < 0.7:
                return None
            shape = pick.choice(([2], [3], [2, 2], [1, 2], [t.numel()]))
            fewer = 1
            for size in shape:
                fewer *= size
            if fewer > t.numel():
                return None
            return Step(f"t{n}.resize_({shape})", lambda ts: ts[n].resize_(shape))
        size = t.shape[0] if t.dim() else 0
        if not size:
            return None
        index = pick.randrange(size) if pick.random() < 0.5 else slice(pick.randrange(size), size, pick.choice((1, 2)))

        def item(ts: List[torch.Tensor]) -> None:
            if kind == "setitem":
                ts[n][index] = number
            else:
                ts[n][index] += number

        return Step(f"t{n}[{index}] {'=' if kind == 'setitem' else '+='} {number}", item)

    def read(self, tensors: List[torch.Tensor]) -> Step:
        n = self.random.randrange(len(tensors))
        return Step(f"read t{n}", lambda ts: ts[n].clone().cpu())

    def step(self, tensors: List[torch.Tensor]) -> Optional[Step]:
        chance = self.random.random()
        if chance < 0.55:
            return self.view(tensors)
        return self.write(tensors) if chance < 0.95 else self.read(tensors)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().resolve_conj().resolve_neg()


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = plain(a).contiguous(), plain(b).contiguous()
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) if a.is_floating_point() or a.is_complex() else torch.equal(a, b)


def run(seed: int, device: str, steps: int = 14, largest: int = 200) -> str:
    """The program of a seed; what is wrong with its tensors on the device, or nothing."""
    generator = Generator(seed)
    ours: List[torch.Tensor]
    theirs = generator.start()
    ours = [t.to(device) for t in theirs]
    lines = [f"t{i} = {t.dtype} {tuple(t.shape)}" for i, t in enumerate(theirs)]
    for _ in range(steps):
        step = generator.step(theirs)
        if step is None:
            continue
        count = len(theirs)
        try:
            step.apply(theirs)
        except (RuntimeError, IndexError, ValueError, TypeError):
            del theirs[count:]
            continue
        if len(theirs) > count and theirs[-1].numel() > largest:
            del theirs[count:]
            continue
        lines.append((f"t{count} = " if len(theirs) > count else "") + step.text)
        try:
            step.apply(ours)
        except Exception as error:  # noqa: BLE001
            return "\n".join([*lines, f"{type(error).__name__}: {error}"])
    for n, (a, b) in enumerate(zip(ours, theirs)):
        try:
            if not same(a, b):
                return "\n".join([*lines, f"t{n} is {plain(a).tolist()}, expected {plain(b).tolist()}"])
            if device == "tpu" and (a.stride() != b.stride() or a.storage_offset() != b.storage_offset()) and b.numel():
                return "\n".join([*lines, f"t{n} has strides {a.stride()}, {a.storage_offset()}, expected {b.stride()}, {b.storage_offset()}"])
            if (a.is_conj(), a.is_neg()) != (b.is_conj(), b.is_neg()):
                return "\n".join([*lines, f"t{n} has the bits {a.is_conj()}, {a.is_neg()}"])
        except Exception as error:  # noqa: BLE001
            return "\n".join([*lines, f"t{n}: {type(error).__name__}: {error}"])
    return ""


def main() -> int:
    import hlokit.torch  # noqa: F401

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--device", default="tpu")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.first, options.first + options.count):
        problem = run(seed, options.device)
        if problem:
            failed += 1
            print(f"seed {seed}:\n{problem}\n")
    print(f"{options.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
