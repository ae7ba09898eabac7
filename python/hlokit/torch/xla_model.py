# SPDX-License-Identifier: Apache-2.0
"""Functions with the names of torch_xla.core.xla_model."""

from hlokit import _hlokit
from . import _session


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """Runs what was recorded on this thread's device."""
    _hlokit._clear_scopes()
    _session.current().mark_step(_session.ordinal_of(None), wait, "")
