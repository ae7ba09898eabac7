// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "parser/stablehlo/special_functions.h"

namespace hlokit::stablehlo {
namespace {

// erfc(x) for |x| >= 1, from that of |x| by erfc(-x) = 2 - erfc(x).
Term FromMagnitude(Term x, Term erfc_of_magnitude) {
  return Select(x < 0.0, 2.0 - erfc_of_magnitude, erfc_of_magnitude);
}

Term ErfcF64(Term x) {
  // |x| < 1: erf(x) = x T(x^2) / U(x^2).
  static constexpr double kT[] = {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                                  7.00332514112805075473e3, 5.55923013010394962768e4};
  static constexpr double kU[] = {1.0,
                                  3.35617141647503099647e1,
                                  5.21357949780152679795e2,
                                  4.59432382970980127987e3,
                                  2.26290000613890934246e4,
                                  4.92673942608635921086e4};
  // 1 <= x < 8: erfc(x) = exp(-x^2) P(x) / Q(x); above R(x) / S(x).
  static constexpr double kP[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                                  4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                                  9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
  static constexpr double kQ[] = {1.0,
                                  1.32281951154744992508e1,
                                  8.67072140885989742329e1,
                                  3.54937778887819891062e2,
                                  9.75708501743205489753e2,
                                  1.82390916687909736289e3,
                                  2.24633760818710981792e3,
                                  1.65666309194161350182e3,
                                  5.57535340817727675546e2};
  static constexpr double kR[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                                  6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
  static constexpr double kS[] = {1.0,
                                  2.26052863220117276590e0,
                                  9.39603524938001434673e0,
                                  1.20489539808096656605e1,
                                  1.70814450747565897222e1,
                                  9.60896809063285878198e0,
                                  3.36907645100081516050e0};
  constexpr double kMaxLog = 7.09782712893383996843e2;
  const Term squared = x * x;
  const Term magnitude = Abs(x);
  const Term exponential = Exp(-squared);
  const Term middle = exponential * Polynomial(magnitude, kP) / Polynomial(magnitude, kQ);
  const Term large = exponential * Polynomial(magnitude, kR) / Polynomial(magnitude, kS);
  const Term bounded = Select(-squared < -kMaxLog, x.Like(0.0), Select(magnitude < 8.0, middle, large));
  const Term small = 1.0 - x * Polynomial(squared, kT) / Polynomial(squared, kU);
  return Select(magnitude < 1.0, small, FromMagnitude(x, bounded));
}

Term ErfcF32(Term x) {
  // |x| < 1: erf(x) = x T(x^2).
  static constexpr double kT[] = {7.853861353153693e-5f,  -8.010193625184903e-4f, 5.188327685732524e-3f,
                                  -2.685381193529856e-2f, 1.128358514861418e-1f,  -3.761262582423300e-1f,
                                  1.128379165726710e+0f};
  // 1 <= x < 2: erfc(x) = exp(-x^2) / x P(1 / x^2); above with R.
  static constexpr double kP[] = {2.326819970068386e-2f,  -1.387039388740657e-1f, 3.687424674597105e-1f,
                                  -5.824733027278666e-1f, 6.210004621745983e-1f,  -4.944515323274145e-1f,
                                  3.404879937665872e-1f,  -2.741127028184656e-1f, 5.638259427386472e-1f};
  static constexpr double kR[] = {-1.047766399936249e+1f, 1.297719955372516e+1f,  -7.495518717768503e+0f,
                                  2.921019019210786e+0f,  -1.015265279202700e+0f, 4.218463358204948e-1f,
                                  -2.820767439740514e-1f, 5.641895067754075e-1f};
  constexpr double kMaxLog = 88.72283905206835;
  const Term squared = x * x;
  const Term magnitude = Abs(x);
  const Term reciprocal = 1.0 / squared;
  const Term factor = Exp(-squared) * (1.0 / magnitude);
  const Term sum = Select(magnitude < 2.0, Polynomial(reciprocal, kP), Polynomial(reciprocal, kR));
  const Term bounded = Select(-squared < -kMaxLog, x.Like(0.0), factor * sum);
  const Term small = 1.0 - x * Polynomial(squared, kT);
  return Select(magnitude < 1.0, small, FromMagnitude(x, bounded));
}

// erf_inv(x) = x p(w), where w = -log(1 - x^2) is moved and scaled by its range.
Term AtEnds(Term x, Term inside) { return Select(Abs(x) == 1.0, x * std::numeric_limits<double>::infinity(), inside); }

Term ErfInvF64(Term x) {
  static constexpr double kBelow625[] = {
      -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
      -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
      -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
      1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
      -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
      -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
  static constexpr double kBelow16[] = {
      2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
      1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
      -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
      0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
      0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
  static constexpr double kAbove[] = {
      -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
      7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
      2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
      7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
      4.8499064014085844221};
  const Term w = -Log1p(-(x * x));
  const Term root = Sqrt(w);
  const Term value = Select(w < 6.25, Polynomial(w - 3.125, kBelow625),
                            Select(w < 16.0, Polynomial(root - 3.25, kBelow16), Polynomial(root - 5.0, kAbove)));
  return AtEnds(x, value * x);
}

Term ErfInvF32(Term x) {
  static constexpr double kBelow5[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                       -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                       -0.00417768164f,  0.246640727f,    1.50140941f};
  static constexpr double kAbove[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                      -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                      0.00943887047f,   1.00167406f,     2.83297682f};
  const Term w = -Log1p(-(x * x));
  const Term value = Select(w < 5.0, Polynomial(w - 2.5, kBelow5), Polynomial(Sqrt(w) - 3.0, kAbove));
  return AtEnds(x, value * x);
}

// The sum of Chebyshev polynomials of x / 2, those of high degree first, the constant one halved; by Clenshaw's rule.
Term Chebyshev(Term x, absl::Span<const double> coefficients) {
  Term b0 = x.Like(coefficients[0]), b1 = x.Like(0.0), b2 = b1;
  for (double c : coefficients.subspan(1)) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + c;
  }
  return 0.5 * (b0 - b2);
}

Term BesselI1eOf(Term x, absl::Span<const double> up_to_8, absl::Span<const double> above) {
  const Term z = Abs(x);
  const Term small = z * Chebyshev(0.5 * z - 2.0, up_to_8);
  const Term large = Chebyshev(32.0 / z - 2.0, above) / Sqrt(z);
  return x.Apply(Opcode::kSign) * Select(z <= 8.0, small, large);
}

}  // namespace

Term Erfc(Term x) { return x.type() == ElementType::kF64 ? ErfcF64(x) : ErfcF32(x); }

Term ErfInv(Term x) { return x.type() == ElementType::kF64 ? ErfInvF64(x) : ErfInvF32(x); }

Term BesselI1e(Term x) {
  static constexpr double kUpTo8[] = {
      2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16, -1.10559694773538630805e-15,
      7.60068429473540693410e-15, -5.04218550472791168711e-14, 3.22379336594557470981e-13, -1.98397439776494371520e-12,
      1.17361862988909016308e-11, -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9,
      9.38153738649577178388e-9,  -4.44505912879632808065e-8,  2.00329475355213526229e-7,  -8.56872026469545474066e-7,
      3.47025130813767847674e-6,  -1.32731636560394358279e-5,  4.78156510755005422638e-5,  -1.61760815825896745588e-4,
      5.12285956168575772895e-4,  -1.51357245063125314899e-3,  4.15642294431288815669e-3,  -1.05640848946261981558e-2,
      2.47264490306265168283e-2,  -5.29459812080949914269e-2,  1.02643658689847095384e-1,  -1.76416518357834055153e-1,
      2.52587186443633654823e-1};
  static constexpr double kAbove[] = {
      7.51729631084210481353e-18,  4.41434832307170791151e-18,  -4.65030536848935832153e-17,
      -3.20952592199342395980e-17, 2.96262899764595013876e-16,  3.30820231092092828324e-16,
      -1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14,
      4.27244001671195135429e-14,  -2.10154184277266431302e-14, -4.08355111109219731823e-13,
      -7.19855177624590851209e-13, 2.03562854414708950722e-12,  1.41258074366137813316e-11,
      3.25260358301548823856e-11,  -1.89749581235054123450e-11, -5.58974346219658380687e-10,
      -3.83538038596423702205e-9,  -2.63146884688951950684e-8,  -2.51223623787020892529e-7,
      -3.88256480887769039346e-6,  -1.10588938762623716291e-4,  -9.76109749136146840777e-3,
      7.78576235018280120474e-1};
  if (x.type() == ElementType::kF64) return BesselI1eOf(x, kUpTo8, kAbove);
  // The leading terms are below the precision of f32.
  constexpr size_t kSmallTerms = 17, kLargeTerms = 7;
  return BesselI1eOf(x, absl::MakeConstSpan(kUpTo8).last(kSmallTerms), absl::MakeConstSpan(kAbove).last(kLargeTerms));
}

}  // namespace hlokit::stablehlo
