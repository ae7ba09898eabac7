# SPDX-License-Identifier: Apache-2.0
"""The programs of the comparison, in the order of the table."""

from . import arrays, loops, models, products, solves
from .program import Program

PROGRAMS: list[Program] = [*products.PROGRAMS, *arrays.PROGRAMS, *models.PROGRAMS, *loops.PROGRAMS, *solves.PROGRAMS]
