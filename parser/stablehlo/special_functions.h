// SPDX-License-Identifier: Apache-2.0
// Functions of CHLO that have no HLO opcode, by the approximations that XLA uses. Arguments are arrays of one shape of
// floating-point numbers; narrower ones than f32 are computed in f32 and rounded once.
#ifndef HLOKIT_PARSER_STABLEHLO_SPECIAL_FUNCTIONS_H_
#define HLOKIT_PARSER_STABLEHLO_SPECIAL_FUNCTIONS_H_

#include "parser/stablehlo/term.h"

namespace hlokit::stablehlo {

// ---- special_functions_error.cc ----
// 1 - erf(x), without cancellation for large x. Cephes: ndtr.c, ndtrf.c.
Term Erfc(Term x);
// The inverse of erf on (-1, 1). Giles, "Approximating the erfinv function".
Term ErfInv(Term x);
// exp(-|x|) I1(x), the modified Bessel function of order 1. Cephes: i1.c.
Term BesselI1e(Term x);

// ---- special_functions_gamma.cc ----
// log |gamma(x)| and its derivative. Lanczos, "A precision approximation of the gamma function".
Term Lgamma(Term x);
Term Digamma(Term x);
// The Hurwitz zeta function, the sum over k >= 0 of (q + k)^-x. Johansson, arXiv:1309.2877, formula (5).
Term Zeta(Term x, Term q);
// The derivative of order n of digamma, for natural numbers n.
Term Polygamma(Term n, Term x);

// The next number of the type after x towards y. convert_chlo.cc
Term NextAfter(Term x, Term y);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_SPECIAL_FUNCTIONS_H_
