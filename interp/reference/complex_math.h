// SPDX-License-Identifier: Apache-2.0
// Functions of complex numbers that C++ lacks, or defines differently from XLA at zeros and infinities.
#ifndef HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_
#define HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_

#include "interp/reference/value.h"

namespace hlokit::reference {

// Returns atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2)).
C128 ComplexAtan2(C128 y, C128 x);
C128 ComplexCbrt(C128 z);
// Returns exp(z). The result is NaN where the magnitude is 0 or infinite without an angle; C returns 0 or infinity.
C128 ComplexExp(C128 z);
// Returns exp(z) - 1, or log(1 + z), accurate near z = 0 and near |1 + z| = 1.
C128 ComplexExpm1(C128 z);
C128 ComplexLog1p(C128 z);
// Returns a^b. The power 0 gives 1; 0 to a power with positive real part gives 0.
C128 ComplexPower(C128 a, C128 b);
C128 ComplexRsqrt(C128 z);
// Returns z / |z|.
C128 ComplexSign(C128 z);

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_COMPLEX_MATH_H_
