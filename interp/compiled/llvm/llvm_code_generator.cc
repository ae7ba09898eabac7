// SPDX-License-Identifier: Apache-2.0
// The module libhlokit_llvm.so: machine code for loop programs.
//
// LLVM writes an ELF object; its code and constants are joined to one image here, with the references between them
// resolved. Loading it is then a copy into executable memory, which needs no LLVM.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "interp/compiled/code/code_generator.h"
#include "interp/compiled/code/engine_build_id.h"
#include "interp/compiled/llvm/address_checks.h"
#include "interp/compiled/llvm/loop_emitter.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Pass.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar.h"

namespace hlokit::interp::compiled {
namespace {

const char* CpuOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kSse4:
      return "x86-64-v2";
    case InstructionSet::kAvx2:
      return "x86-64-v3";
    case InstructionSet::kAvx512:
      return "x86-64-v4";
  }
  return "";
}

llvm::Error Failed(const std::string& message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

// A target machine is expensive to make and must not be shared by threads.
llvm::Expected<llvm::TargetMachine*> MachineOf(InstructionSet set) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  thread_local std::map<InstructionSet, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[set];
  if (machine != nullptr) return machine.get();
  const char* const triple = "x86_64-unknown-linux-gnu";
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return Failed(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine.reset(target->createTargetMachine(triple, CpuOf(set), "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                            llvm::CodeGenOptLevel::Default));
  return machine.get();
}

// Joins the sections of an object that the program needs at run time.
llvm::Error JoinSections(llvm::StringRef object, GeneratedCode* code) {
  auto parsed = llvm::object::ELFObjectFile<llvm::object::ELF64LE>::create(llvm::MemoryBufferRef(object, "loop"));
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return Failed("the object cannot be read");
  }
  std::map<llvm::object::SectionRef, int64_t> offsets;
  for (const llvm::object::SectionRef& section : parsed->sections()) {
    const llvm::object::ELFSectionRef elf(section);
    if ((elf.getFlags() & llvm::ELF::SHF_ALLOC) == 0 || elf.getType() != llvm::ELF::SHT_PROGBITS) continue;
    if ((elf.getFlags() & llvm::ELF::SHF_WRITE) != 0) return Failed("the code has variables");
    // Unwind information is not needed: nothing is thrown through a kernel.
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      return Failed("the object has a section without a name");
    }
    if (*name == ".eh_frame") continue;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) {
      llvm::consumeError(contents.takeError());
      return Failed("the object has a section without contents");
    }
    const size_t align = section.getAlignment().value();
    const size_t begin = (code->image.size() + align - 1) / align * align;
    code->image.resize(begin + contents->size());
    std::memcpy(code->image.data() + begin, contents->data(), contents->size());
    offsets[section] = static_cast<int64_t>(begin);
  }
  for (const llvm::object::SectionRef& section : parsed->sections()) {
    llvm::Expected<llvm::object::section_iterator> to = section.getRelocatedSection();
    if (!to) {
      llvm::consumeError(to.takeError());
      continue;
    }
    if (*to == parsed->section_end() || !offsets.contains(**to)) continue;
    for (const llvm::object::ELFRelocationRef relocation : section.relocations()) {
      const llvm::object::symbol_iterator symbol = relocation.getSymbol();
      if (symbol == parsed->symbol_end()) return Failed("the code has a reference without a symbol");
      llvm::Expected<llvm::object::section_iterator> of = symbol->getSection();
      llvm::Expected<uint64_t> value = symbol->getValue();
      llvm::Expected<int64_t> addend = relocation.getAddend();
      if (!of || !value || !addend) {
        if (!of) llvm::consumeError(of.takeError());
        if (!value) llvm::consumeError(value.takeError());
        if (!addend) llvm::consumeError(addend.takeError());
        return Failed("the code has an undefined reference");
      }
      const bool relative =
          relocation.getType() == llvm::ELF::R_X86_64_PC32 || relocation.getType() == llvm::ELF::R_X86_64_PLT32;
      if (*of == parsed->section_end() || !offsets.contains(**of) || !relative) {
        return Failed("the code refers to something outside");
      }
      const int64_t at = offsets[**to] + static_cast<int64_t>(relocation.getOffset());
      const int32_t distance = static_cast<int32_t>(offsets[**of] + static_cast<int64_t>(*value) + *addend - at);
      if (at < 0 || at + 4 > static_cast<int64_t>(code->image.size())) {
        return Failed("a reference is outside of the code");
      }
      std::memcpy(code->image.data() + at, &distance, sizeof(distance));
    }
  }
  for (const llvm::object::ELFSymbolRef symbol : parsed->symbols()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    if (*name != "kernel") continue;
    llvm::Expected<llvm::object::section_iterator> of = symbol.getSection();
    llvm::Expected<uint64_t> value = symbol.getValue();
    if (!of || !value || !offsets.contains(**of)) return Failed("the kernel has no address");
    code->entry = offsets[**of] + static_cast<int64_t>(*value);
    return llvm::Error::success();
  }
  return Failed("the object has no kernel");
}

class LlvmCodeGenerator : public CodeGenerator {
 public:
  std::variant<GeneratedCode, GenerationError> Generate(const LoopProgram& program, InstructionSet set,
                                                        bool with_text) override {
    GeneratedCode code;
    if (llvm::Error error = Compile(program, set, with_text, &code)) return GenerationError{toString(std::move(error))};
    return code;
  }

 private:
  static llvm::Error Compile(const LoopProgram& program, InstructionSet set, bool with_text, GeneratedCode* code) {
    llvm::Expected<llvm::TargetMachine*> machine = MachineOf(set);
    if (!machine) return machine.takeError();
    llvm::LLVMContext context;
    llvm::Module module("loop", context);
    module.setTargetTriple((*machine)->getTargetTriple().str());
    module.setDataLayout((*machine)->createDataLayout());
    LoopEmitter emitter(program, set, &module);
    if (llvm::Error error = emitter.Emit()) return error;
    code->saved_values = emitter.saved_values();
    std::string invalid;
    llvm::raw_string_ostream report(invalid);
    if (llvm::verifyModule(module, &report)) return Failed(invalid);
    code->is_of_process = kChecksAddresses;
    if (kChecksAddresses) {
      if (llvm::Error error = AddAddressChecks(*machine, &module)) return error;
    }
    if (with_text) {
      llvm::raw_string_ostream text(code->ir);
      module.print(text, nullptr);
    }
    llvm::SmallVector<char, 0> object;
    if (!Write(*machine, &module, llvm::CodeGenFileType::ObjectFile, &object)) {
      return Failed("LLVM cannot write an object");
    }
    if (llvm::Error error = JoinSections(llvm::StringRef(object.data(), object.size()), code)) return error;
    if (with_text) AddAssembly(program, set, *machine, code);
    return llvm::Error::success();
  }

  // Adds the texts that need a module of their own, if there is one.
  static void AddAssembly(const LoopProgram& program, InstructionSet set, llvm::TargetMachine* machine,
                          GeneratedCode* code) {
    llvm::LLVMContext context;
    llvm::Module module("loop", context);
    module.setTargetTriple(machine->getTargetTriple().str());
    module.setDataLayout(machine->createDataLayout());
    LoopEmitter emitter(program, set, &module);
    if (llvm::Error error = emitter.Emit()) return llvm::consumeError(std::move(error));
    if (kChecksAddresses) {
      if (llvm::Error error = AddAddressChecks(machine, &module)) return llvm::consumeError(std::move(error));
    }
    llvm::SmallVector<char, 0> assembly;
    if (!Write(machine, &module, llvm::CodeGenFileType::AssemblyFile, &assembly)) return;
    code->assembly.assign(assembly.data(), assembly.size());
    llvm::raw_string_ostream optimized(code->optimized_ir);
    module.print(optimized, nullptr);
  }

  static bool Write(llvm::TargetMachine* machine, llvm::Module* module, llvm::CodeGenFileType type,
                    llvm::SmallVector<char, 0>* to) {
    llvm::raw_svector_ostream stream(*to);
    llvm::legacy::PassManager passes;
    // Before all others: passes that need this and do not find it make one that knows no processor, with which masked
    // loads and stores become branches for each lane.
    passes.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
    passes.add(llvm::createEarlyCSEPass());
    if (machine->addPassesToEmitFile(passes, stream, nullptr, type)) return false;
    passes.run(*module);
    return true;
  }
};

}  // namespace
}  // namespace hlokit::interp::compiled

extern "C" __attribute__((visibility("default"))) hlokit::interp::compiled::CodeGenerator* HlokitOpenCodeGenerator() {
  static auto* const generator = new hlokit::interp::compiled::LlvmCodeGenerator();
  return generator;
}

extern "C" __attribute__((visibility("default"))) const char* HlokitEngineBuildId() {
  return hlokit::interp::compiled::kEngineBuildId;
}
