// SPDX-License-Identifier: Apache-2.0
// Bessel functions of the first and second kind and modified ones of the second kind, of order 0 and 1, and Airy's
// function. Each is a polynomial near 0, and from there on its asymptotic form with factors that are polynomials of a
// power of 1 / x: Chebyshev series within 3e-14, in powers of a variable between -1 and 1, the highest first.
#include <cmath>
#include <limits>
#include <numbers>

#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

constexpr double kPi = std::numbers::pi;

// Of x^2 / 32 - 1 for x from 0 to 8: J0, J1 / x, and what Y0 and Y1 / x are without their logarithms and poles.
constexpr double kJ0Near[] = {3.3794626319436791e-10, -7.9619468768748199e-9, 1.5955848859935914e-7,
                              -2.7176792879412139e-6, 3.8473200058014168e-5,  -0.00044354597585424749,
                              0.0040580789881087706,  -0.028472718589027142,  0.14598884856785538,
                              -0.50746804585168957,   1.0383794611436882,     -0.80808880766926225,
                              -0.64846928308718207,   0.93030124729584574,    0.045829664859813757};
constexpr double kJ1Near[] = {-2.9580309461613664e-10, 6.4719965805527108e-9,  -1.1966856610655616e-7,
                              1.8683964949160818e-6,   -2.4045750380401834e-5, 0.00024949461961572916,
                              -0.002029039493866671,   0.012456814378873774,   -0.054745818212995044,
                              0.15858376432944999,     -0.25959486528591658,   0.1515166514379269,
                              0.081058660385897588,    -0.058143827955989647};
constexpr double kY0Near[] = {-5.6745623817674761e-10, 1.2978473176656259e-8,  -2.5143647260335756e-7,
                              4.1219337449384763e-6,   -5.5818308517416832e-5, 0.00061043465650753212,
                              -0.0052350276689753912,  0.033802856926307492,   -0.15453679652356973,
                              0.44824604464354601,     -0.61934078263027777,   -0.21245999442139226,
                              1.3609456599655429,      -0.41792074232067559,   -0.3620273432371452};
constexpr double kY1Near[] = {4.8972441672040239e-10, -1.0384725271738632e-8, 1.8523808489984373e-7,
                              -2.7764101686769577e-6, 3.4063636757925023e-5,  -0.0003337226351903457,
                              0.002527134045453595,   -0.014131923371465563,  0.054390116308204431,
                              -0.12641995056949658,   0.12052035426885771,    0.09022750636754674,
                              -0.20760857842830538,   0.045102662068692408};

// Of 128 / x^2 - 1 for x from 8 on: P and x Q of sqrt(2 / (pi x)) (P cos c - Q sin c), c = x - pi / 4 - order pi / 2.
constexpr double kP0[] = {5.5380425512383239e-12, -2.7549304767522504e-11, 1.5430831129269751e-10,
                          -1.2100433370147668e-9, 1.2804017666717393e-8,   -2.0527506887046808e-7,
                          6.1374160475431626e-6,  -0.00053636731916844721, 0.99945727578825261};
constexpr double kQ0[] = {8.7147008824227044e-12,  -3.4164000617701652e-11, 1.3430655343255628e-10,
                          -7.5259933853973519e-10, 5.1471114924835606e-9,   -4.5351575987053867e-8,
                          5.6849702717311488e-7,   -1.181711042632956e-5,   0.00054665192795570608,
                          -0.1244409110361129};
constexpr double kP1[] = {-5.9958064435078262e-12, 3.0074851297475471e-11, -1.7056402360564498e-10,
                          1.3580727957625921e-9,   -1.4708787296165847e-8, 2.4536829418874076e-7,
                          -7.9596946635788828e-6,  0.00089880494162261765, 1.0009070262780815};
constexpr double kQ1[] = {-9.3414449051183047e-12, 3.6830992209065259e-11, -1.4611471148907229e-10,
                          8.2623402709383315e-10,  -5.7218265247240972e-9, 5.1363032019956932e-8,
                          -6.6335668492949702e-7,  1.4569614559190186e-5,  -0.00076971670577306601,
                          0.37421499221959689};

// Of x^2 / 2 - 1 for x from 0 to 2: K0 and K1 / x without logarithms and poles. Of 4 / x - 1 from there on: exp(x)
// sqrt(x) K.
constexpr double kK0Near[] = {5.4525646627725857e-12, 6.6238049648855197e-10, 6.0933618941721138e-8,
                              4.0545065605729842e-6,  0.0001828055582791554,  0.0050533926432125858,
                              0.071777010342405096,   0.34049732101337936,    -0.30362077291575547};
constexpr double kK1Near[] = {-4.2358801619046662e-11, -4.4743268243562646e-9,  -3.4958297648996178e-7,
                              -1.9109761956192327e-5,  -0.00067247466096615419, -0.013254642948997838,
                              -0.10866462148495116,    -0.05745585613520291};
constexpr double kK0Far[] = {-1.4598231338164528e-9, 2.6322176491744049e-9,  1.3216575198339489e-9,
                             -1.1872004981030557e-9, -1.103951199223949e-8,  2.2423407248829554e-8,
                             -3.8769032565780681e-8, 9.9612817463893241e-8,  -2.6996073961840501e-7,
                             7.4398653615122777e-7,  -2.1909259553380561e-6, 7.0020031484244426e-6,
                             -2.4735236936199237e-5, 9.9560571675833532e-5,  -0.00047976905488393553,
                             0.0030328918093458602,  -0.031071461824921496,  1.2185953385133964};
constexpr double kK1Far[] = {1.6234279234565562e-9,  -2.9414867540410847e-9,  -1.4135178938303687e-9,
                             1.2050339280633892e-9,  1.2553518855066834e-8,   -2.5778209423914887e-8,
                             4.5623900733647091e-8,  -1.1832715677456296e-7,  3.2414502819502565e-7,
                             -9.0804608787058979e-7, 2.7297634280667444e-6,   -8.9609386223267274e-6,
                             3.2843901292661815e-5,  -0.00013959024644150727, 0.00073572415283078335,
                             -0.0055667298790447471, 0.10334973775390052,     1.3631518903713355};

// Of x / 2 for x from -2 to 2. Then with z = 2/3 |x|^1.5 and its least value kLeast: to the right of 2 kLeast / z - 1,
// to the left P and z Q of 2 (kLeast / z)^2 - 1.
constexpr double kAiryNear[] = {-1.8261421396683643e-8, -1.5072753466709799e-7,  8.8684808733807452e-7,
                                -1.845986957194899e-7,  -1.0039671193370059e-5,  3.2613814196458059e-5,
                                4.2224128212167607e-8,  -0.00029981027049870617, 0.00085002623148099829,
                                8.6337257948934823e-8,  -0.0058428290768064447,  0.014025773336771682,
                                -1.603784145872926e-9,  -0.065731907247750401,   0.12623219713695595,
                                -4.866408042102064e-10, -0.3450925384030976,     0.47337073853959435,
                                3.1574132173853113e-13, -0.5176388075859202,     0.35502805388781594};
constexpr double kAiryRight[] = {1.7727868951161708e-9,  -3.2112302343929401e-9,  -1.0940202321377935e-9,
                                 4.5982639859346421e-10, 1.3749501506354229e-8,   -2.8930354863874005e-8,
                                 5.5680630295383788e-8,  -1.4520024879753826e-7,  4.0055412411260047e-7,
                                 -1.1519482449051e-6,    3.5876629029915457e-6,   -1.2354238488917855e-5,
                                 4.8463357559060238e-5,  -0.00022785222487003302, 0.0014132014710500535,
                                 -0.01461345872378514,   0.98367928282804707};
constexpr double kAiryP[] = {
    -1.2724674811036405e-6, 1.119760847513115e-6,  7.5921966178326856e-6,  -6.3797258385433519e-6,
    -2.035743561401477e-5,  1.6293839371133903e-5, 3.2141800442355526e-5,  -2.4371976899508657e-5,
    -3.3119275114896492e-5, 2.3644615738378737e-5, 2.3272207586350752e-5,  -1.5483834539991294e-5,
    -1.1428167178950056e-5, 7.0491181767200846e-6, 3.7964689406153321e-6,  -2.0368916454782703e-6,
    -1.1040765427874412e-6, 7.8307494973733278e-7, -4.4269633781315659e-7, 9.9951497175188418e-7,
    -2.0605492175643154e-6, 4.2774055051844903e-6, -9.8670028233950949e-6, 2.6237408813853061e-5,
    -8.6159019504621021e-5, 0.0004033824029407511, -0.0039376919071679104, 0.99552778536418613};
constexpr double kAiryQ[] = {
    -1.7444067320067941e-5,  1.4488659447633706e-5,  0.00012305200543565543, -9.8399717096548699e-5,
    -0.00039392378813001928, 0.00030244869436744062, 0.00075512024308052208, -0.00055453046913312775,
    -0.00096444099287123378, 0.0006742079008245779,  0.00086429879057315662, -0.00057172584065041866,
    -0.00055783222195219576, 0.00034663794480459509, 0.00026179695490277164, -0.00015131030061493576,
    -8.9434150341126965e-5,  4.7673452112775465e-5,  2.15339963045325e-5,    -1.0043199036893834e-5,
    -4.4557619562933398e-6,  2.7347760742484749e-6,  -1.4551770802701431e-6, 3.0885242699861603e-6,
    -5.9099517824959791e-6,  1.1359377438207305e-5,  -2.3811543585379068e-5, 5.5936731852120281e-5,
    -0.00015475307505832587, 0.00055536207103905198, -0.0032315097458303497, 0.065397347353108719};

// Runs `formula` in a wide float type and converts the result to the type of the argument.
template <typename Formula>
void InWideType(LoweringContext& n, Formula formula) {
  const XlaOp x = n.in(0);
  n.Return(lazy::Cast(formula(Wide(x)), FloatingOf(x.type())));
}

XlaOp Cos(XlaOp x) { return Unary(Opcode::kCos, x); }
XlaOp Sin(XlaOp x) { return Unary(Opcode::kSin, x); }
XlaOp NotANumber(XlaOp like) { return Number(like, std::numeric_limits<double>::quiet_NaN()); }
XlaOp Infinity(XlaOp like) { return Number(like, std::numeric_limits<double>::infinity()); }

struct Oscillation {
  XlaOp p, q, angle, scale;
};
// Requires: x at least 8.
Oscillation Far(XlaOp x, int order) {
  const XlaOp u = 128.0 / (x * x) - 1.0;
  const XlaOp p = order == 0 ? Polynomial(u, kP0) : Polynomial(u, kP1);
  const XlaOp q = (order == 0 ? Polynomial(u, kQ0) : Polynomial(u, kQ1)) / x;
  return {p, q, x - kPi / 4 - kPi / 2 * order, Sqrt(2 / kPi / x)};
}

// J of |x|, for order 1 odd in x.
XlaOp BesselJ(XlaOp x, int order) {
  const XlaOp y = lazy::Abs(x), eight = Number(x, 8);
  const XlaOp small = Min(y, eight);
  const XlaOp t = small * small / 32.0 - 1.0;
  const XlaOp near = order == 0 ? Polynomial(t, kJ0Near) : Polynomial(t, kJ1Near) * small;
  const Oscillation far = Far(Max(y, eight), order);
  const XlaOp value = Select(Le(y, eight), near, far.scale * (far.p * Cos(far.angle) - far.q * Sin(far.angle)));
  const XlaOp bounded = Select(Eq(y, Infinity(y)), Number(y, 0), value);
  const XlaOp odd = order == 1 ? Select(Lt(x, Number(x, 0)), -bounded, bounded) : bounded;
  return Select(IsNan(x), x, odd);
}

// Y for positive x, minus infinity at 0 and NaN below.
XlaOp BesselY(XlaOp x, int order) {
  const XlaOp zero = Number(x, 0), eight = Number(x, 8);
  const XlaOp small = Select(Gt(x, zero), Min(x, eight), Number(x, 1));
  const XlaOp t = small * small / 32.0 - 1.0;
  const XlaOp logarithm = lazy::Log(small / 2.0);
  const XlaOp near = order == 0 ? 2 / kPi * logarithm * Polynomial(t, kJ0Near) + Polynomial(t, kY0Near)
                                : 2 / kPi * (logarithm * Polynomial(t, kJ1Near) * small - 1.0 / small) +
                                      Polynomial(t, kY1Near) * small;
  const Oscillation far = Far(Max(x, eight), order);
  const XlaOp value = Select(Le(x, eight), near, far.scale * (far.p * Sin(far.angle) + far.q * Cos(far.angle)));
  const XlaOp bounded = Select(Eq(x, Infinity(x)), zero, value);
  return Select(Eq(x, zero), -Infinity(x), Select(Lt(x, zero) | IsNan(x), NotANumber(x), bounded));
}

// I0, or I1 / x, as a power series for x from 0 to 2.
XlaOp ShortSeries(XlaOp x, int order) {
  constexpr int kTerms = 12;
  const XlaOp t = x * x * 0.25;
  XlaOp sum = Number(x, 1);
  for (int k = kTerms; k > 0; --k) sum = 1.0 + sum * t / static_cast<double>(k * (k + order));
  return order == 0 ? sum : sum * 0.5;
}

// K for positive x, infinity at 0 and NaN below.
XlaOp BesselK(XlaOp x, int order, bool scaled) {
  const XlaOp zero = Number(x, 0), two = Number(x, 2);
  const XlaOp small = Select(Gt(x, zero), Min(x, two), Number(x, 1));
  const XlaOp t = small * small / 2.0 - 1.0;
  const XlaOp logarithm = lazy::Log(small / 2.0), series = ShortSeries(small, order);
  XlaOp near = order == 0 ? Polynomial(t, kK0Near) - logarithm * series
                          : (logarithm * series + Polynomial(t, kK1Near)) * small + 1.0 / small;
  const XlaOp large = Max(x, two);
  const XlaOp u = 4.0 / large - 1.0;
  XlaOp far = (order == 0 ? Polynomial(u, kK0Far) : Polynomial(u, kK1Far)) * Rsqrt(large);
  if (scaled) {
    near = near * lazy::Exp(small);
  } else {
    far = far * lazy::Exp(-large);
  }
  const XlaOp value = Select(Le(x, two), near, far);
  return Select(Eq(x, zero), Infinity(x), Select(Lt(x, zero) | IsNan(x), NotANumber(x), value));
}

XlaOp AiryOf(XlaOp x) {
  const double least = 2.0 / 3 * 2 * std::numbers::sqrt2;
  const XlaOp two = Number(x, 2), y = Max(lazy::Abs(x), two);
  const XlaOp root = Sqrt(y), z = 2.0 / 3 * (y * root), fourth = Rsqrt(root);
  const XlaOp near = Polynomial(Max(Min(x, two), -two) * 0.5, kAiryNear);
  const XlaOp right = 0.5 / std::sqrt(kPi) * fourth * lazy::Exp(-z) * Polynomial(2 * least / z - 1.0, kAiryRight);
  const XlaOp u = 2 * least * least / (z * z) - 1.0, angle = z + kPi / 4;
  const XlaOp wave = Sin(angle) * Polynomial(u, kAiryP) - Cos(angle) * Polynomial(u, kAiryQ) / z;
  const XlaOp left = 1 / std::sqrt(kPi) * fourth * wave;
  const XlaOp value = Select(Gt(x, two), right, Select(Lt(x, -two), left, near));
  return Select(IsNan(x), x,
                Select(Eq(x, Infinity(x)), Number(x, 0), Select(Eq(x, -Infinity(x)), NotANumber(x), value)));
}

}  // namespace

void BesselJ0(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselJ(x, 0); });
}
void BesselJ1(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselJ(x, 1); });
}
void BesselY0(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselY(x, 0); });
}
void BesselY1(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselY(x, 1); });
}
void BesselK0(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselK(x, 0, false); });
}
void BesselK1(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselK(x, 1, false); });
}
void ScaledBesselK0(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselK(x, 0, true); });
}
void ScaledBesselK1(LoweringContext& n) {
  InWideType(n, [](XlaOp x) { return BesselK(x, 1, true); });
}
void AiryAi(LoweringContext& n) { InWideType(n, AiryOf); }

}  // namespace hlokit::lazy::lower
