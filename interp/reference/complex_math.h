// SPDX-License-Identifier: Apache-2.0
// Functions of complex numbers that C++ lacks, or defines otherwise than XLA at zeros and infinities.
#ifndef HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_
#define HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_

#include "interp/reference/value.h"

namespace hlokit::reference {

// atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2))
C128 ComplexAtan2(C128 y, C128 x);
C128 ComplexCbrt(C128 z);
// NaN where the magnitude is 0 or infinite and there is no angle; C has 0 or infinity there.
C128 ComplexExp(C128 z);
// exp(z) - 1 and log(1 + z) without losing digits near z = 0, and near |1 + z| = 1.
C128 ComplexExpm1(C128 z);
C128 ComplexLog1p(C128 z);
// Whatever to the power of 0 is 1; 0 to a power with a positive real part is 0.
C128 ComplexPower(C128 a, C128 b);
C128 ComplexRsqrt(C128 z);
// z / |z|
C128 ComplexSign(C128 z);

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_
