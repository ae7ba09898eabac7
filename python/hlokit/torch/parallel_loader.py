# SPDX-License-Identifier: Apache-2.0
"""Loaders that upload batches ahead, with the names of torch_xla.distributed.parallel_loader."""

import itertools
import queue
import threading
import time
from typing import Any, Iterable, Iterator, List, Optional, Sequence

from hlokit import _hlokit

from . import _lines, _session, _thread_random, xla_model

_MADE, _SENT, _TAKEN = range(3)


class Loop:
    """A loop over a loader: what its time was spent on, and its line."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.seconds = self.waited = 0.0  # in all, and waiting for batches
        self.batches = 0
        self.line = _lines.user_line()


loops: List[Loop] = []  # of this process; the first ones
_MOST_LOOPS = 1000


class MpDeviceLoader:
    """Batches of `loader` on `device`, uploaded ahead by a thread; a step is marked before each further batch.

    batches_per_execution: batches between two steps. device_prefetch_size: batches uploaded ahead. input_sharding: a
    ShardingSpec of hlokit.torch.spmd for the tensors that have as many dimensions, or a dict of them by the batch's keys.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        device: Any,
        *,
        batches_per_execution: int = 1,
        device_prefetch_size: int = 8,
        input_sharding: Any = None,
        **kwargs: Any,
    ):
        self._loader = loader
        self._input_sharding = input_sharding
        self._device = device
        self._batches_per_execution = max(1, batches_per_execution)
        self._ahead = max(1, device_prefetch_size)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        ready: "queue.Queue[Any]" = queue.Queue(self._ahead)
        stop = threading.Event()

        def put(item: Any) -> bool:
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        session = _session.current()
        start = _hlokit._new_flow()

        def flow(number: int, point: int) -> int:
            """Connects the spans of a batch in the threads."""
            return start << 40 | number << 2 | point

        with _hlokit._LoaderSpan(session, "StartLoader", "", None, start):
            pass

        # The program's code in the loader is of the same process as this thread.
        ordinal, spawned, generator = _session.ordinal_of(None), _session.in_spawn(), _thread_random.generator()

        def load() -> None:
            _hlokit._name_thread("loader.0")
            with _session.as_in(ordinal, spawned), _thread_random.with_generator(generator):
                load_batches()

        def load_batches() -> None:
            try:
                batches = iter(self._loader)
                for number in itertools.count():
                    # The next batch is begun when there is room for it.
                    after = start if number < self._ahead else flow(number - self._ahead, _TAKEN)
                    try:
                        made = flow(number, _MADE)
                        with _hlokit._LoaderSpan(session, "cpu_loader.next", "LoaderBatchTime", after, made, waits=True):
                            batch = next(batches)
                    except StopIteration:
                        put(None)
                        return
                    sent = flow(number, _SENT)
                    with _hlokit._LoaderSpan(session, "cpu_data_to_xla_device", "", made, sent):
                        batch = xla_model.send_cpu_data_to_device(batch, self._device, self._input_sharding)
                    if not put((batch, None)):
                        return
            except BaseException as error:  # noqa: BLE001: raised where the program takes the batch
                put((None, error))

        thread = threading.Thread(target=load, name="loader", daemon=True)
        thread.start()
        try:
            count = 0
            loop = Loop()
            if len(loops) < _MOST_LOOPS:
                loops.append(loop)
            with _session.on_device(_session.ordinal_of(self._device)):
                pass
            while True:
                if count > 0 and count % self._batches_per_execution == 0:
                    self._mark_step()
                sent, taken = flow(count, _SENT), flow(count, _TAKEN)
                with _hlokit._LoaderSpan(session, "WaitForBatch", "LoaderWaitTime", sent, taken):
                    asked = time.monotonic()
                    item = ready.get()
                now = time.monotonic()
                loop.waited, loop.seconds = loop.waited + now - asked, now - loop.begun
                if item is None:
                    if count % self._batches_per_execution != 0:
                        self._mark_step()
                    return
                batch, error = item
                if error is not None:
                    raise error
                count += 1
                loop.batches = count
                yield batch
        finally:
            stop.set()
            thread.join()

    def _mark_step(self) -> None:
        with _session.on_device(_session.ordinal_of(self._device)):
            xla_model.step("loader")
            xla_model.run_closures()


class ParallelLoader:
    """One loader for several devices: batches go to them in turn. per_device_loader(device) iterates over its own."""

    def __init__(self, loader: Iterable[Any], devices: Sequence[Any], **kwargs: Any):
        self._loader = loader
        self._devices = [_session.ordinal_of(d) for d in devices]
        self._options = kwargs

    def per_device_loader(self, device: Any) -> MpDeviceLoader:
        place = self._devices.index(_session.ordinal_of(device))
        count = len(self._devices)

        class Part:
            def __init__(self, loader: Iterable[Any]):
                self.loader = loader

            def __iter__(self) -> Iterator[Any]:
                batches: List[Any] = []
                for batch in self.loader:
                    batches.append(batch)
                    if len(batches) == count:
                        yield batches[place]
                        batches = []

        return MpDeviceLoader(Part(self._loader), device, **self._options)
