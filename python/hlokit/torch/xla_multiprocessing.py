# SPDX-License-Identifier: Apache-2.0
"""Data-parallel programs: a thread for each device of the session, under the name of
torch_xla.distributed.xla_multiprocessing, whose devices are processes."""

import threading
from typing import Any, Callable, List, Optional, Tuple

from . import _session


def spawn(
    fn: Callable[..., Any],
    args: Tuple[Any, ...] = (),
    nprocs: Optional[int] = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Calls fn(index, *args) in a thread for each of nprocs devices, whose device is xla:index, and waits for all.

    The session gets this many devices. The first error of a thread is raised; devices that wait for it end with it.
    """
    count = _session.current().device_count if nprocs is None else nprocs
    if count != _session.current().device_count:
        _session.configure(count)
    session = _session.current()
    errors: List[Optional[BaseException]] = [None] * count

    def run(index: int) -> None:
        with _session.on_device(index):
            try:
                fn(index, *args)
                why = f"xla:{index} has ended"
            except BaseException as error:  # noqa: BLE001: raised by spawn
                errors[index] = error
                why = f"xla:{index} failed: {error}"
            session.leave(index, why)

    threads = [threading.Thread(target=run, args=(i,), name=f"xla:{i}") for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.next_session()
    found = [e for e in errors if e is not None]
    # The first cause: others report that a device has ended.
    for error in sorted(found, key=lambda e: "failed:" in str(e) or "has ended" in str(e)):
        raise error
