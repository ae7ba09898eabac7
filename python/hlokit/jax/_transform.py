# SPDX-License-Identifier: Apache-2.0
"""Passes of hlokit, and rewrites in Python, within XLA's own pipeline: JAX compiles what they leave of a program."""

from __future__ import annotations

import functools
import re
import threading
import types
import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import hlokit

_F = TypeVar("_F", bound=Callable[..., Any])
_STAGES = {"before_scheduling": "PRE_SCHEDULER", "after_scheduling": "POST_SCHEDULER"}
_lock = threading.RLock()
_active: list[transform] = []  # that are entered, once for each time, in order; guarded by _lock
_counter = 0


class Program(NamedTuple):
    """A program that a transform was given while XLA compiled it."""

    name: str
    changed: bool


class NotTransformedWarning(UserWarning):
    """Nothing was compiled where a transform was in effect."""


@functools.cache
def _context() -> Any:
    """The part of the keys of JAX's caches that says which transforms a program was compiled with."""
    import jax
    from jax._src import cache_key  # JAX has no public name for the hook

    context = jax.make_user_context(default_value=None)
    before = cache_key.custom_hook

    def hook() -> str:
        return before() + "".join(_keys())

    cache_key.custom_hook = hook
    return context


def _keys() -> tuple[str, ...]:
    with _lock:
        return tuple(dict.fromkeys(t._key for t in _active))


class transform:
    """Programs that JAX compiles within it are rewritten on their way through XLA: a context manager, and a decorator.

        with hlokit.jax.transform("algsimp,cse"):
            step(params, batch)

        @hlokit.jax.transform(rewrite)  # outside of jax.jit
        @jax.jit
        def step(params, batch): ...

    `rewrite` is a pipeline in the words of hlo-opt --passes, with passes written in Python among them, or a function of
    a hlokit.Module that edits it and returns whether it did, or returns another module. `stage` says where in XLA's
    pipeline: "before_scheduling", after XLA's own optimizations and layout assignment, or "after_scheduling". `modules`
    limits it to programs whose whole names match the regular expression, as "jit_step". `platforms` are those of JAX,
    as "cpu"; by default all that have been started.

    What is compiled within is compiled anew, and not used elsewhere: the transform is in the keys of JAX's caches. The
    persistent compilation cache does not keep such programs from one process to the next. While it is entered it is in
    effect in all threads of the process, as XLA compiles in threads of its own. `programs` lists what it was given.

    An error of the rewrite, or a module that is not valid afterwards, or has other parameters or results, is the error
    of the program: the original exception leaves the `with` block, or the call, with a note that names the program, and
    the instruction's source lines as JAX has them.

    Raises RuntimeError where it is entered while JAX traces a function, which would have no effect, and where JAX or the
    platform has no such transforms (JAX 0.10 has the first).
    """

    def __init__(self, rewrite: str | Callable[[hlokit.Module], Any], *, stage: str = "before_scheduling",
                 modules: str | None = None, platforms: str | Sequence[str] | None = None):
        if stage not in _STAGES:
            raise ValueError(f"stage {stage!r}: expected one of {', '.join(map(repr, _STAGES))}")
        if not isinstance(rewrite, str) and not callable(rewrite):
            raise TypeError(f"a rewrite is a pipeline or a function of a module, not {type(rewrite).__name__}")
        import hlokit

        if isinstance(rewrite, str):
            hlokit.Module  # loads the extension module, whose absence is an error here
        self.programs: list[Program] = []
        self._rewrite = rewrite
        self._stage = stage
        self._modules = re.compile(modules) if modules is not None else None
        self._platforms = [platforms] if isinstance(platforms, str) else platforms
        self._key = f"hlokit:{uuid.uuid4()}"
        self._registered: list[str] = []  # platforms
        self._name = ""
        self._error: BaseException | None = None
        self._before: list[int] = []  # of each block that is entered: the programs at its beginning

    def __enter__(self) -> transform:
        from jax._src import core  # JAX has no public name for it

        if not core.trace_state_clean():
            raise RuntimeError("hlokit.jax.transform is entered while JAX traces a function, where it has no effect on how the "
                               "function is compiled: put it around the call, or outside of jax.jit")
        context = _context()
        with _lock:
            if self not in _active:
                self._register()
            _active.append(self)
            self._before.append(len(self.programs))
            context.set_global(_keys())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: types.TracebackType | None) -> None:
        with _lock:
            del _active[len(_active) - 1 - _active[::-1].index(self)]
            if self not in _active:
                self._clear()
            _context().set_global(_keys() or None)
            before = self._before.pop()
        own, self._error = self._error, None
        # JAX's error has the text of the rewrite's.
        if own is not None and error is not None and own is not error and type(own).__name__ in str(error):
            if str(own) in str(error):
                raise own from error
        if error is None and len(self.programs) == before:
            wanted = "" if self._modules is None else f" whose name matches {self._modules.pattern!r}"
            warnings.warn(f"no program{wanted} was compiled within hlokit.jax.transform, so nothing was transformed",
                          NotTransformedWarning, stacklevel=2)

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]

    def _register(self) -> None:
        global _counter
        try:
            from jax._src import xla_bridge
            from jax.extend import xla
        except ImportError:
            raise RuntimeError("this release of JAX has no transforms of modules within XLA: 0.10 has the first") from None
        _counter += 1
        self._name = f"hlokit-{_counter}"
        stage = xla.PipelineStage[_STAGES[self._stage]]
        started = list(xla_bridge.backends())
        failed: dict[str, Exception] = {}
        for platform in self._platforms if self._platforms is not None else started:
            try:
                xla.register_hlo_module_transformation(self._callback, name=self._name, stage=stage, platforms=platform)
                self._registered.append(platform)
            except Exception as error:  # jaxlib has no type of its own for it
                failed[platform] = error
        if failed and (self._platforms is not None or not self._registered or
                       xla_bridge.get_backend().platform in failed):
            self._clear()
            platform, cause = next(iter(failed.items()))
            raise RuntimeError(f"the platform {platform} has no transforms of modules: {cause}") from cause

    def _clear(self) -> None:
        from jax.extend import xla

        for platform in self._registered:
            xla.clear_hlo_module_transformation(self._name, stage=xla.PipelineStage[_STAGES[self._stage]], platforms=platform)
        self._registered.clear()

    def _callback(self, proto: bytes) -> bytes | None:
        import hlokit

        name = "a program"
        module = None
        try:
            module = hlokit.parse(proto, name="<XLA>", verify=False)
            name = module.name
            if self._modules is not None and not self._modules.fullmatch(name):
                return None
            result = self._apply(module)
            self.programs.append(Program(name, result is not None))
            return result
        except BaseException as error:
            for note in (f"in hlokit.jax.transform, of the program {name}", *_source_lines(module, str(error))):
                error.add_note(note)
            self._error = error
            raise

    def _apply(self, module: hlokit.Module) -> bytes | None:
        """Returns the rewritten module, None if it is the same."""
        import hlokit

        before = _module_proto(module)
        original = module.clone()
        if isinstance(self._rewrite, str):
            changed: Any = module.run(self._rewrite)
        else:
            changed = self._rewrite(module)
            if isinstance(changed, hlokit.Module):
                module, changed = changed, True
        if changed is not None and not changed:
            return None
        after = _module_proto(module)
        if after == before:
            return None
        if (was := _signature(original)) != (now := _signature(module)):
            raise ValueError(f"the rewrite changed the parameters or results of the program: {was} became {now}")
        if _verify_error(original) is None and (error := _verify_error(module)) is not None:
            raise error
        return after


def _signature(module: hlokit.Module) -> str:
    entry = module.entry
    return f"({', '.join(str(p.shape) for p in entry.parameters)}) -> {entry.root.shape}"


def _verify_error(module: hlokit.Module) -> Exception | None:
    import hlokit

    try:
        module.verify()
    except hlokit.HloError as error:
        return error
    return None


def _module_proto(module: hlokit.Module) -> bytes:
    """The HloModuleProto of a module, from its HloProto: the field 1."""
    message = module.to_format("proto")
    size = shift = 0
    at = 1
    while True:
        byte = message[at]
        size |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return message[at : at + size]


def _source_lines(module: hlokit.Module | None, text: str) -> list[str]:
    """Says where instructions that a message names come from in the user's program."""
    lines = []
    for name in dict.fromkeys(re.findall(r"`%?([\w.-]+)`", text)):
        try:
            metadata = module[name].metadata if module is not None else None
        except (LookupError, AttributeError, ReferenceError):
            continue
        if metadata is not None and metadata.source_file:
            lines.append(f"`{name}` is of {metadata.source_file}:{metadata.source_line}")
    return lines
