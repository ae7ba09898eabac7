# SPDX-License-Identifier: Apache-2.0
"""Calls with complex numbers of Python, which the tracer's table does not have: with tensors without dimensions instead."""

from typing import Any, Callable, Dict

import torch

aten = torch.ops.aten

# By overload: calls that the recorder did not take because of a complex number, or of complex tensors.
RETRIES: Dict[Any, Callable[..., Any]] = {}


def _retries(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            base, _, overload = name.partition(".")
            func = getattr(getattr(aten, base, None), overload or "default", None)
            if func is not None:
                RETRIES[func] = function
        return function

    return register


def number(value: Any, like: torch.Tensor) -> torch.Tensor:
    """A number as a tensor without dimensions on the device of another, of a type that does not widen it."""
    if not isinstance(value, complex):
        return aten.scalar_tensor.default(value, dtype=like.dtype, device=like.device)  # type: ignore[no-any-return]
    part = torch.float64 if like.dtype in (torch.float64, torch.complex128) else torch.float32
    parts = [aten.scalar_tensor.default(x, dtype=part, device=like.device) for x in (value.real, value.imag)]
    return aten.complex.default(*parts)  # type: ignore[no-any-return]


def _device_of(args: Any) -> Any:
    for value in args:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _device_of(value)
            if found is not None:
                return found
    return None


# Overloads that take tensors where others take numbers.
_SIBLINGS = {"Scalar": ("Tensor", "Tensor_Tensor"), "Tensor_Scalar": ("Tensor_Tensor", "Tensor"), "Scalar_Tensor": ("Tensor",),
             "int_Scalar": ("int_Tensor",), "Scalar_mode": ("Tensor_mode",), "ScalarOther": ("self",), "ScalarSelf": ("self",),
             "Scalar_Other": ("Tensor",), "Scalar_Self": ("Tensor",)}


def _sibling(func: Any) -> Any:
    name = func._schema.name
    packet = getattr(getattr(torch.ops, name.split("::")[0]), name.split("::")[1])
    for other in _SIBLINGS.get(func._schema.overload_name, ()):
        found = getattr(packet, other, None)
        if found is not None:
            return found
    return None


def has_complex(args: Any) -> bool:
    return any(isinstance(v, complex) or isinstance(v, (list, tuple)) and has_complex(v) for v in args)


def retried(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call that the recorder did not take, by others that it may take, or NotImplemented."""
    like = _device_of(args)
    if like is not None and not kwargs:  # tensors of PyTorch that stand for numbers are numbers here
        placed = [number(v, like) if isinstance(v, complex) and str(a.type) == "Tensor" else v
                  for v, a in zip(args, func._schema.arguments)]
        if any(v is not w for v, w in zip(placed, args)):
            return func(*placed)
    retry = RETRIES.get(func)
    if retry is not None:
        return retry(*args, **kwargs)
    if not has_complex((*args, *kwargs.values())):
        return NotImplemented
    other = _sibling(func)
    if like is None or other is None:
        return NotImplemented
    moved = [number(v, like) if isinstance(v, (complex, float, int)) and not isinstance(v, bool) else v for v in args]
    if has_complex(kwargs.values()):
        if set(kwargs) != {"alpha"} or other not in (aten.add.Tensor, aten.sub.Tensor):
            return NotImplemented
        return _add_scaled(moved[0], moved[1], kwargs["alpha"], other)
    return other(*moved, **kwargs)


def _add_scaled(self: torch.Tensor, other: torch.Tensor, alpha: Any, func: Any) -> Any:
    return func(self, aten.mul.Tensor(other, number(alpha, other)))


@_retries("add.Tensor", "add.Scalar")
def _add(self: torch.Tensor, other: Any, alpha: Any = 1) -> Any:
    if isinstance(other, torch.Tensor) and not isinstance(alpha, complex) and alpha == 1:
        return NotImplemented  # the call itself
    other = other if isinstance(other, torch.Tensor) else number(other, self)
    return _add_scaled(self, other, alpha, aten.add.Tensor) if isinstance(alpha, complex) or alpha != 1 else aten.add.Tensor(self, other)


@_retries("sub.Tensor", "sub.Scalar")
def _sub(self: torch.Tensor, other: Any, alpha: Any = 1) -> Any:
    return _add(self, other, -alpha)


@_retries("rsub.Tensor", "rsub.Scalar")
def _rsub(self: torch.Tensor, other: Any, alpha: Any = 1) -> Any:
    other = other if isinstance(other, torch.Tensor) else number(other, self)
    return _add(other, self, -alpha)


def _weighted(self: torch.Tensor, product: torch.Tensor, beta: Any, alpha: Any) -> torch.Tensor:
    scaled = aten.mul.Tensor(product, number(alpha, product))
    return scaled if beta == 0 else aten.add.Tensor(aten.mul.Tensor(self, number(beta, self)), scaled)  # type: ignore[no-any-return]


def _products() -> None:
    """Sums of a tensor and a product, each with a factor."""

    def register(name: str, product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        def sum_of(self: torch.Tensor, a: torch.Tensor, b: torch.Tensor, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
            return _weighted(self, product(a, b), beta, alpha)

        _retries(name)(sum_of)

    register("addmm", aten.mm.default)
    register("addmv", aten.mv.default)
    register("baddbmm", aten.bmm.default)
    register("addbmm", lambda a, b: aten.sum.dim_IntList(aten.bmm.default(a, b), [0]))
    register("addr", lambda a, b: aten.mul.Tensor(aten.unsqueeze.default(a, 1), b))


_products()


@_retries("addcmul")
def _addcmul(self: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, value: Any = 1) -> Any:
    return aten.add.Tensor(self, aten.mul.Tensor(aten.mul.Tensor(a, b), number(value, a)))


@_retries("addcdiv")
def _addcdiv(self: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, value: Any = 1) -> Any:
    return aten.add.Tensor(self, aten.mul.Tensor(aten.div.Tensor(a, b), number(value, a)))


@_retries("fill_.Scalar")
def _fill_(self: torch.Tensor, value: Any) -> Any:
    return aten.fill_.Tensor(self, number(value, self))


@_retries("fill.Scalar")
def _fill(self: torch.Tensor, value: Any) -> Any:
    return aten.expand.default(aten._to_copy.default(number(value, self), dtype=self.dtype), list(self.shape))


@_retries("full_like")
def _full_like(self: torch.Tensor, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    value = aten._to_copy.default(number(fill_value, self), dtype=dtype or self.dtype)
    return aten.clone.default(aten.expand.default(value, list(self.shape)))


@_retries("new_full")
def _new_full(self: torch.Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    value = aten._to_copy.default(number(fill_value, self), dtype=dtype or self.dtype)
    return aten.clone.default(aten.expand.default(value, list(size)))


@_retries("constant_pad_nd")
def _constant_pad_nd(self: torch.Tensor, pad: Any, value: Any = 0) -> Any:
    value = complex(value)
    parts = [aten.constant_pad_nd.default(p, pad, v) for p, v in ((aten.real(self), value.real), (aten.imag(self), value.imag))]
    return aten.complex.default(*parts)


@_retries("masked_fill_.Scalar")
def _masked_fill_(self: torch.Tensor, mask: torch.Tensor, value: Any) -> Any:
    return aten.masked_fill_.Tensor(self, mask, number(value, self))


@_retries("lerp.Scalar")
def _lerp(self: torch.Tensor, end: torch.Tensor, weight: Any) -> Any:
    return aten.add.Tensor(self, aten.mul.Tensor(aten.sub.Tensor(end, self), number(weight, self)))


@_retries("logaddexp")
def _logaddexp(self: torch.Tensor, other: torch.Tensor) -> Any:
    if not self.is_complex():
        return NotImplemented
    larger = aten.ge.Tensor(aten.real(self), aten.real(other))
    first, second = aten.where.self(larger, self, other), aten.where.self(larger, other, self)
    infinite = aten.logical_and.default(aten.isinf.default(aten.real(first)), aten.eq.Tensor(first, second))
    value = aten.add.Tensor(first, aten.log1p.default(aten.exp.default(aten.sub.Tensor(second, first))))
    return aten.where.self(infinite, first, value)


@_retries("lerp.Tensor")
def _lerp_by_tensor(self: torch.Tensor, end: torch.Tensor, weight: torch.Tensor) -> Any:
    if not self.is_complex() or self.dtype != end.dtype:
        return NotImplemented
    weight = weight.to(self.dtype)
    way = aten.sub.Tensor(end, self)
    near = aten.lt.Scalar(aten.abs.default(weight), 0.5)
    from_end = aten.sub.Tensor(end, aten.mul.Tensor(way, aten.rsub.Scalar(weight, 1)))
    return aten.where.self(near, aten.add.Tensor(self, aten.mul.Tensor(weight, way)), from_end)


@_retries("normal_")
def _normal_(self: torch.Tensor, mean: Any = 0, std: Any = 1, *, generator: Any = None) -> Any:
    if not self.is_complex() or generator is not None:
        return NotImplemented
    part = aten.new_zeros.default(aten.real(self), list(self.shape))
    drawn = [aten.normal_.default(aten.clone.default(part), 0, std * 0.5**0.5) for _ in range(2)]
    return aten.copy_.default(self, aten.add.Tensor(aten.complex.default(*drawn), number(complex(mean), self)))


@_retries("uniform_")
def _uniform_(self: torch.Tensor, low: Any = 0, high: Any = 1, *, generator: Any = None) -> Any:
    if not self.is_complex() or generator is not None:
        return NotImplemented
    part = aten.new_zeros.default(aten.real(self), list(self.shape))
    drawn = [aten.uniform_.default(aten.clone.default(part), low, high) for _ in range(2)]
    return aten.copy_.default(self, aten.complex.default(*drawn))


def _random_like(func: Any, factor: float) -> None:
    def like(self: torch.Tensor, *, dtype: Any = None, generator: Any = None, **_: Any) -> Any:
        part = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype or self.dtype)
        if part is None or generator is not None:
            return NotImplemented
        real = aten.zeros.default(list(self.shape), dtype=part, device=self.device)
        return aten.complex.default(*(aten.mul.Scalar(func(real), factor) for _ in range(2)))

    RETRIES[func] = like


_random_like(aten.rand_like.default, 1.0)
_random_like(aten.randn_like.default, 0.5**0.5)


def created(func: Any, args: Any, kwargs: Any) -> Any:
    """A new tensor with complex elements, by its parts, or NotImplemented."""
    dtype = kwargs.get("dtype")
    part = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype) if dtype is not None else None
    if part is None:
        return NotImplemented
    options = {**kwargs, "dtype": part}
    if func is aten.randn.default:
        drawn = [aten.mul.Scalar(func(*args, **options), 0.5**0.5) for _ in range(2)]
        return aten.complex.default(*drawn)
    if func is aten.rand.default:
        return aten.complex.default(func(*args, **options), func(*args, **options))
    if func in (aten.full.default, aten.linspace.default) and has_complex((*args, *kwargs.values())):
        real = [v.real if isinstance(v, complex) else v for v in args]
        imaginary = [v.imag if isinstance(v, complex) else (0 if isinstance(v, float) else v) for v in args]
        if func is aten.linspace.default:
            imaginary = [complex(v).imag for v in args[:2]] + list(args[2:])
        elif not isinstance(args[1], complex):
            return NotImplemented
        return aten.complex.default(func(*real, **options), func(*imaginary, **options))
    return NotImplemented
