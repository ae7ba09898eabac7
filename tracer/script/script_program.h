// SPDX-License-Identifier: Apache-2.0
// A parsed script: for each function, and for the statements outside of functions, code for a machine with a stack.
// Expressions are in postfix order, so that running them takes no recursion.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_PROGRAM_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_PROGRAM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "tracer/graph/op.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_value.h"
#include "tracer/script/signature.h"

namespace hlokit::lazy::script {

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kPower,
  kMatmul,
  kAnd,  // of bits, or of tensors of bool
  kOr,
  kXor,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // With one operand.
  kNegate,
  kPlus,
  kInvert,
  kNot,
  kGrad,
  kItem,
};

enum class Code : uint8_t {
  // Expressions: take operands from the stack, push the result.
  kConstant,  // a: constant
  kLoad,      // a: variable
  kList,      // a: number of members
  kLiteral,   // a: literal
  kHash,      // a: literal, the shape; takes the number of the stream
  kUnary,     // a: Operator
  kBinary,    // a: Operator; b: 1 to write to a tensor in place
  kAnd,       // a: jumps there with the first operand if it decides
  kOr,
  kIndex,
  kCall,  // a: call site
  // Statements.
  kStatement,     // a: line
  kPop,           // forgets a value
  kStore,         // a: list of variables
  kJump,          // a: target
  kJumpIfFalse,   // a: target
  kLoopBegin,     // a: loop; b: 1 for `repeat`
  kLoopNext,      // a: loop, b: target at the end; pushes the next member
  kLoopEnd,       // a: loop; its own variables end
  kOpen,          // a: block
  kClose,         // a: number of the innermost blocks to close
  kCapture,       // a: capture
  kReturn,        // a: number of results
  kRequiresGrad,  // a: number of values
  kBackward,      // a: 1 to retain the graph
  kZeroGrad,      // a: number of values
  kStep,          // a: number of values
  kTrain,         // a: number of values, b: 1 for training
  kDelete,        // a: variable
  kMarkStep,
  kWait,
  kManualSeed,
  kPrint,      // a: literal, the text of the value
  kPrintItem,  // a: literal
  kDump,       // a: kind, an index of DumpKinds(); b: number of values
};

struct Instruction {
  Code code = Code::kPop;
  uint32_t a = 0;
  uint32_t b = 0;
  SourceRange range;  // for messages
};

struct CallArgument {
  std::string name;  // empty: by position
  SourceRange name_range;
  SourceRange range;
};

struct CallSite {
  enum class Kind : uint8_t { kOp, kNative, kFunction, kValue } kind = Kind::kValue;
  std::string name;
  SourceRange name_range;
  SourceRange range;
  std::vector<CallArgument> arguments;
  // An op: its overloads, and whether the result is written to the first argument.
  std::vector<Op> ops;
  bool in_place = false;
  const NativeFunction* native = nullptr;
  size_t function = 0;  // of ScriptProgram::functions
  // For functions: the parameter of each argument.
  std::vector<size_t> places;
};

// A block that sets something until its end.
struct Block {
  enum class Kind : uint8_t { kNoGrad, kAutocast, kScope, kCompile } kind = Kind::kNoGrad;
  std::string name;  // of a scope or a compiled region
  ElementType type = ElementType::kBF16;
  bool full_graph = false;
  int64_t max_different_graphs = 0;  // 0: any number
};

// A block that is captured, in parts between statements that need values.
struct Capture {
  struct Part {
    uint32_t begin = 0, end = 0;
    bool captured = false;     // otherwise run as it is
    bool runs_graphs = false;  // fetches values, on which its statements may depend
    std::string name;
    std::vector<uint32_t> reads = {};    // variables that it reads before it surely wrote them
    std::vector<uint32_t> renewed = {};  // variables that it surely writes and does not read before
  };
  size_t function = 0;
  std::string name;
  bool full_graph = false;
  uint32_t begin = 0, end = 0;
  std::vector<std::pair<uint32_t, uint32_t>> statements;  // those directly in the block, without blocks in it
  std::vector<Part> parts;
};

struct Loop {
  int32_t parent = -1;
  uint32_t depth = 0;
  uint32_t position = 0;            // variable that holds the position
  std::vector<uint32_t> variables;  // that only the loop mentions, and the position
};

// Code that does not always run: a branch, the body of a loop.
struct Region {
  uint32_t parent = 0;  // region 0 is that of the function
};

struct Function {
  Signature signature;
  SourceRange name_range;
  std::vector<std::string> variables;  // parameters first; names of hidden ones are empty
  std::vector<Instruction> code;
  std::vector<Loop> loops;
  std::vector<Region> regions = {Region()};
  std::vector<std::pair<uint32_t, uint32_t>> region_starts;  // place in the code, region
  bool runs_graphs = false;  // fetches a value, marks a step, or waits for other devices
  bool differentiates = false;
};

struct ScriptProgram {
  std::vector<Function> functions;  // the first is the statements outside of functions
  std::vector<CallSite> calls;
  std::vector<Value> constants;
  std::vector<SourceRange> literals;           // values, shapes and labels in the text
  std::vector<std::vector<uint32_t>> targets;  // of assignments
  std::vector<Block> blocks;
  std::vector<Capture> captures;
  bool differentiates_outside = false;  // of captures: their results may take part
  int64_t devices = 0;                  // as stated by the script; 0: not stated
};

// The words after `dump`.
absl::Span<const std::string_view> DumpKinds();

// Parses a script. Returns false after errors, which are in the sink.
bool ParseProgram(const SourceBuffer& source, ScriptProgram* program, DiagnosticSink* sink);

// Finds the parameter of each argument of a call. `report` is called for each error: where, what, a hint.
bool AssignArguments(const Signature& signature, const CallSite& call, std::vector<size_t>* places,
                     const std::function<void(SourceRange, std::string, std::string)>& report);

// Divides the captures of a parsed program into parts.
void PlanCaptures(ScriptProgram* program);

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_PROGRAM_H_
