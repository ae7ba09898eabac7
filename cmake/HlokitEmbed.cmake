# hlokit_embed_machines(TARGET FOLDER): compiles FOLDER/*.tpu into TARGET as hlokit::tpu::kInstalledMachines, in order of
# name, so that tools need no file at run time.
function(hlokit_embed_machines target folder)
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*.tpu")
  list(SORT files)
  list(LENGTH files count)
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file STEM name)
    file(READ "${file}" text)
    string(APPEND rows "    {\"${name}\", R\"tpu(${text})tpu\"},\n")
  endforeach()
  set(output "${PROJECT_BINARY_DIR}/generated/installed_machines.cc")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
#include "interp/tpu/machine.h"

namespace hlokit::tpu {

const InstalledText kInstalledMachines[] = {
@rows@};
const size_t kInstalledMachineCount = @count@;

}  // namespace hlokit::tpu
]])
  target_sources(${target} PRIVATE "${output}")
endfunction()
