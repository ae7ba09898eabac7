// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/llvm/address_checks.h"

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

namespace hlokit::interp::compiled {

llvm::Error AddAddressChecks(llvm::TargetMachine* machine, llvm::Module* module) {
  for (llvm::Function& function : *module) {
    if (!function.isDeclaration()) function.addFnAttr(llvm::Attribute::SanitizeAddress);
  }
  // Tables of constants keep their size and place: the image has no room for boundaries between them.
  for (llvm::GlobalVariable& global : module->globals()) {
    llvm::GlobalValue::SanitizerMetadata metadata;
    metadata.NoAddress = true;
    global.setSanitizerMetadata(metadata);
  }
  llvm::PassBuilder builder(machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::AddressSanitizerOptions options;
  options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;
  options.InsertVersionCheck = false;
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AddressSanitizerPass(options, /*UseGlobalGC=*/false, /*UseOdrIndicator=*/false,
                                            llvm::AsanDtorKind::None, llvm::AsanCtorKind::None));
  passes.run(*module, modules);
  // What the checks call is called by its address: the image has no references to the outside.
  std::vector<llvm::Function*> outside;
  for (llvm::Function& function : *module) {
    if (function.isDeclaration() && !function.isIntrinsic() && function.getName().starts_with("__asan_")) {
      outside.push_back(&function);
    }
  }
  for (llvm::Function* const function : outside) {
    const std::string name = function->getName().str();
    void* const address = dlsym(RTLD_DEFAULT, name.c_str());
    if (address == nullptr && !function->use_empty()) {
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "this process has no function " + name);
    }
    llvm::Constant* const number = llvm::ConstantInt::get(llvm::Type::getInt64Ty(module->getContext()),
                                                          static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)));
    function->replaceAllUsesWith(llvm::ConstantExpr::getIntToPtr(number, function->getType()));
    function->eraseFromParent();
  }
  return llvm::Error::success();
}

}  // namespace hlokit::interp::compiled
