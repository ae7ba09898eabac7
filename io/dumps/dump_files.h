// SPDX-License-Identifier: Apache-2.0
// The files of a folder of XLA's dumps (--xla_dump_to): what each holds, by the names that XLA gives them.
#ifndef HLOKIT_IO_DUMPS_DUMP_FILES_H_
#define HLOKIT_IO_DUMPS_DUMP_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit {

// A file named [PREFIX.]module_NNNN.[MODULE.]REST, or jax_irNNNN_MODULE_compile.mlir, as jax_dump_ir_to writes it. REST
// is the name of a stage of the module, such as `cpu_after_optimizations` or
// `NNNN.PIPELINE.after_PASS.before_NEXT` or `NNNN.PASS.after_STEP`, with a suffix for the form: .txt, .hlo, .hlo.pb,
// .hlo.pb.gz, .hlo_proto.pb, .hlo_module.pb, .mlir, .pbtxt, .textproto. Other files of a module have names of their
// own.
struct DumpFile {
  // In the order of the compilation as far as modules go.
  enum class Kind {
    kStablehlo,  // MLIR text
    kBeforeOptimizations,
    kPass,
    kStage,  // a module at another place
    kAfterOptimizations,
    kSnapshot,  // a module with values of an execution
    kBufferAssignment,
    kThunkSequence,
    kPassTimes,  // HloModuleMetadataProto
    kOther
  };

  std::string path;
  uint64_t bytes = 0;
  int64_t written_us = 0;  // when the file was last written, by a clock of the file system
  std::string module;      // [FOLDER/][PREFIX.]module_NNNN, of a folder within the one that was listed
  std::string prefix;      // without the dot
  int64_t number = 0;      // NNNN
  std::string rest;        // after the number: with the module's name
  Kind kind = Kind::kOther;
  std::string_view description;  // of the kind, "pass"; of other files by their suffix, "LLVM IR"

  // Of a module: its stage with the module's name, without the suffix, so that forms of one stage are equal.
  std::string stage;
  bool is_proto = false;
  int64_t pass_number = -1;  // kPass
  std::string pipeline, pass, next;
};

// Returns false for a file that is not named so.
bool ParseDumpName(std::string_view file_name, DumpFile* file);

// Returns the files of a dump by module, and the number of files with other names. Of folders within it
// (--xla_dump_hlo_to_subfolder: NAME/HOST_PROCESS) those with names of a dump; others in them are not counted.
struct DumpListing {
  std::vector<DumpFile> files;  // by prefix, number and name
  int64_t others = 0;
};
absl::StatusOr<DumpListing> ListDumpFiles(const std::string& directory);

// Returns true if a module comes from files of this kind.
bool IsStage(DumpFile::Kind kind);

// Returns true for a file whose name says that it holds no module, but something else of one.
bool IsKnownSideFile(const DumpFile& file);

}  // namespace hlokit

#endif  // HLOKIT_IO_DUMPS_DUMP_FILES_H_
