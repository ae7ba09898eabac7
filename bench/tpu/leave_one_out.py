# SPDX-License-Identifier: Apache-2.0
"""Leave-one-out errors of the fitted figures of a target.

A figure counts as fitted if its source in `hlo-run --print-device` begins with "fitted". For each row, all fitted
figures of its target are fitted again to the other rows with the label `fit` or `part`: least squares of the errors in
logarithms, one Gauss-Newton step from the figures of the target along differences of 5 %, with a prior that does not
depend on any row. Then the row is simulated with the figures that result.
"""
import math
import re

STEP = 0.05

# What each fitted figure would be without measurements, and the standard deviation of its logarithm. Efficiencies:
# nearly full use. Overheads: of the order that the published fixed cost of a kernel, 1 to 2 us, leaves to each.
PRIORS = {
    "mxu_efficiency": (0.9, 0.15), "mxu_overhead": (1e-6, 1.0), "hbm_efficiency": (0.8, 0.2), "hbm_latency": (1e-6, 0.7),
    "kernel_overhead": (1e-7, 2.0), "overlap_exponent": (3, 0.5), "transcendental_rate": (1, 0.5), "vmem_efficiency": (0.5, 0.5),
    "xlu_drain_latency": (5e-7, 1.0), "hbm_sustained_efficiency": (0.8, 0.2),
    "attention_efficiency": (0.6, 0.5), "attention_launch_overhead": (1e-5, 1.0), "attention_block_overhead": (5e-6, 1.0), "attention_paged_efficiency": (0.3, 0.5),
    "ici_efficiency": (0.9, 0.1), "ici_launch_overhead": (5e-6, 1.0),
}
LIMITS = {"mxu_efficiency": 1, "attention_efficiency": 1, "hbm_efficiency": 1, "vmem_efficiency": 1, "hbm_sustained_efficiency": 1, "attention_paged_efficiency": 1,
          "ici_efficiency": 1}
SIGMA = 0.07  # of the logarithm of a row that the figures do not explain
UNITS = {"us": 1e-6, "ns": 1e-9, "ms": 1e-3, "s": 1}


def fitted_figures(text):
    """Figures of a printed device description whose source says that they are fitted: name -> value in SI units."""
    figures = {}
    for line in text.splitlines():
        found = re.match(r"\s+(\w+)\s+([\d.e+-]+)(?: ([a-zA-Z/]+))?(?: \+-[\d.]+%)?\s+#\s*fitted", line)
        if found and found.group(1) in PRIORS:
            figures[found.group(1)] = float(found.group(2)) * UNITS.get(found.group(3), 1)
    return figures


def solve(matrix, right):
    """Solves a symmetric positive definite system by elimination."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, n + 1):
                rows[r][c] -= factor * rows[i][c]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][c] * x[c] for c in range(i + 1, n))) / rows[i][i]
    return x


class Fit:
    """Fits the figures of one target. `simulate(row, factors)` returns the predicted time of a row."""

    def __init__(self, rows, figures, simulate):
        self.rows = rows
        self.figures = figures
        self.names = list(figures)
        self.simulate = simulate
        self.residual = {}  # log(predicted / measured)
        self.slope = {}     # derivative of the logarithm by that of each figure
        for r in rows:
            base = simulate(r, {})
            self.residual[r] = math.log(base / r.measured)
            self.slope[r] = [self._difference(r, n, base) for n in self.names]

    def _difference(self, row, name, base):
        factor = 1 + STEP
        if self.figures[name] * factor > LIMITS.get(name, math.inf):
            factor = 1 - STEP
        return math.log(self.simulate(row, {name: factor}) / base) / math.log(factor)

    def deviations(self):
        """Standard deviations of the logarithms of the figures after a fit to all rows."""
        matrix, _ = self._equations(None)
        units = [[float(i == j) for j in range(len(self.names))] for i in range(len(self.names))]
        return {name: math.sqrt(solve(matrix, units[i])[i]) for i, name in enumerate(self.names)}

    def factors(self, left_out=None):
        """Factors of the figures after a fit without one row."""
        matrix, right = self._equations(left_out)
        change = solve(matrix, right) if self.names else []
        result = {}
        for name, c in zip(self.names, change):
            factor = math.exp(min(max(c, -1), 1))
            result[name] = min(factor, LIMITS.get(name, math.inf) / self.figures[name])
        return result

    def _equations(self, left_out):
        n = len(self.names)
        matrix = [[0.0] * n for _ in range(n)]
        right = [0.0] * n
        for i, name in enumerate(self.names):
            value, deviation = PRIORS[name]
            matrix[i][i] += 1 / deviation ** 2
            right[i] += math.log(value / self.figures[name]) / deviation ** 2
        for r in self.rows:
            if r is left_out or r.label == "seen":
                continue
            slope = self.slope[r]
            for i in range(n):
                if slope[i] == 0:
                    continue
                right[i] -= slope[i] * self.residual[r] / SIGMA ** 2
                for j in range(n):
                    matrix[i][j] += slope[i] * slope[j] / SIGMA ** 2
        return matrix, right

    def left_out(self, row):
        """The predicted time of a row with the figures fitted to the others."""
        return self.simulate(row, self.factors(row))
