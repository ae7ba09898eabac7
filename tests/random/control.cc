// SPDX-License-Identifier: Apache-2.0
// Tuples, tokens and queues, loops, branches and calls, asynchronous pairs, dynamic sizes.
#include <string>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {

bool ModuleGenerator::EmitControl(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const Array array{random_.Of(kNumbers), RandomDims(0, 2)};
  const bool deep = nesting_ >= options_.max_nesting;
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kTuple: {
      const std::string tuple = Line(TupleText({array, array}), "tuple", {Need(array), Need(array)});
      TakeElement(tuple, random_.In(0, 1), array);
      return true;
    }
    case ShapeRule::kGetTupleElement: {
      const std::string inner = Line(TupleText({array}), "tuple", {Need(array)});
      const std::string tuple =
          Line(StrCat("(", TupleText({array}), ", ())"), "tuple", {inner, Line("()", "tuple", {})});
      TakeElement(Line(TupleText({array}), "get-tuple-element", {tuple}, "index=0"), 0, array);
      return true;
    }
    case ShapeRule::kToken:
    case ShapeRule::kInfeed:
    case ShapeRule::kSend:
    case ShapeRule::kRecv:
    case ShapeRule::kRecvDone: {
      const std::string token = Line("token[]", "after-all", {});
      if (opcode == Opcode::kInfeed) {
        const std::string fed = Line(StrCat("((", Text(array), "), token[])"), "infeed", {token});
        TakeElement(Line(TupleText({array}), "get-tuple-element", {fed}, "index=0"), 0, array);
      } else if (opcode == Opcode::kOutfeed) {
        Line("token[]", "outfeed", {Need(array), token}, StrCat("outfeed_shape=", Text(array)));
      } else if (opcode != Opcode::kAfterAll) {
        const std::string channel = StrCat("channel_id=", ++names_);
        const std::string shape = StrCat("(", Text(array), ", u32[], token[])");
        const std::string sent = Line(shape, "send", {Need(array), token}, channel);
        // Only the token orders the send before the wait.
        const std::string done = Line("token[]", "send-done", {sent}, channel);
        const std::string received = Line(shape, "recv", {done}, channel);
        TakeElement(Line(StrCat("(", Text(array), ", token[])"), "recv-done", {received}, channel), 0, array);
      }
      return true;
    }
    case ShapeRule::kCall: {
      if (deep) return true;
      const Array result{random_.Of(kNumbers), RandomDims(0, 2)};
      const std::string operand = Need(array);
      Add(result, text, {operand}, StrCat("to_apply=", Body({array}, result)));
      return true;
    }
    case ShapeRule::kWhile: {
      if (deep) return true;
      const std::string init = Need(array);
      const std::string body = Body({array}, array);
      const std::string state = StrCat("(s32[], ", Text(array), ")");
      const std::string condition = NewName("condition");
      StrAppend(&computations_, condition, " {\n  s = ", state,
                " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(", random_.In(0, 3),
                ")\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n\n");
      const std::string loop = NewName("loop");
      StrAppend(
          &computations_, loop, " {\n  s = ", state,
          " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  one = s32[] constant(1)\n  j = s32[] add(i, "
          "one)\n  x = ",
          Text(array), " get-tuple-element(s), index=1\n  y = ", Text(array), " call(x), to_apply=", body,
          "\n  ROOT r = ", state, " tuple(j, y)\n}\n\n");
      const std::string zero = Line("s32[]", "constant", {"0"});
      const std::string begin = Line(state, "tuple", {zero, init});
      TakeElement(Line(state, text, {begin}, StrCat("condition=", condition, ", body=", loop)), 1, array);
      return true;
    }
    case ShapeRule::kConditional: {
      if (deep) return true;
      const Array result{random_.Of(kNumbers), RandomDims(0, 2)};
      const std::string a = Need(array);
      const std::string x = Body({array}, result);
      const std::string y = Body({array}, result);
      if (random_.OneIn(2)) {
        Add(result, text, {Scalar(kPred), a, a}, StrCat("true_computation=", x, ", false_computation=", y));
      } else {
        Add(result, text, {Scalar(kS32), a, a}, StrCat("branch_computations={", x, ", ", y, "}"));
      }
      return true;
    }
    case ShapeRule::kAsyncStart:
    case ShapeRule::kAsyncUpdate:
    case ShapeRule::kAsyncDone: {
      const std::string name = NewName("wrapped");
      StrAppend(&computations_, name, " {\n  p = ", Text(array), " parameter(0)\n  ROOT r = ", Text(array),
                " negate(p)\n}\n\n");
      const std::string shape = StrCat("((", Text(array), "), ", Text(array), ", s32[])");
      const std::string start = Line(shape, "async-start", {Need(array)}, StrCat("calls=", name));
      const std::string update = Line(shape, "async-update", {start});
      Add(array, "async-done", {update});
      return true;
    }
    case ShapeRule::kCopyStart:
    case ShapeRule::kCopyDone:
      Add(array, "copy-done",
          {Line(StrCat("(", Text(array), ", ", Text(array), ", u32[])"), "copy-start", {Need(array)})});
      return true;
    case ShapeRule::kSetDimensionSize:
    case ShapeRule::kGetDimensionSize: {
      const int64_t bound = random_.In(1, 4);
      const std::string from = Need({array.type, {bound}});
      const std::string size = Line("s32[]", "constant", {StrCat(random_.In(0, bound))});
      const std::string set =
          Line(StrCat(ToString(array.type), "[<=", bound, "]"), "set-dimension-size", {from, size}, "dimensions={0}");
      Add({kS32, {}}, "get-dimension-size", {set}, "dimensions={0}");
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
