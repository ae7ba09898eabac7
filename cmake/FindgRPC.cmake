# SPDX-License-Identifier: Apache-2.0
# gRPC::grpc++, gRPC's C++ library, and gRPC::grpc_cpp_plugin, its generator: Debian's CMake configuration requires more
# packages than needed. Also installed with hlokitConfig.cmake, for projects that link the static libraries.
find_path(gRPC_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(gRPC_CPP_LIBRARY grpc++)
find_library(gRPC_LIBRARY grpc)
find_library(gRPC_GPR_LIBRARY gpr)
find_program(gRPC_CPP_PLUGIN grpc_cpp_plugin)
mark_as_advanced(gRPC_INCLUDE_DIR gRPC_CPP_LIBRARY gRPC_LIBRARY gRPC_GPR_LIBRARY gRPC_CPP_PLUGIN)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(gRPC REQUIRED_VARS gRPC_CPP_LIBRARY gRPC_LIBRARY gRPC_GPR_LIBRARY gRPC_INCLUDE_DIR)

if(gRPC_FOUND AND NOT TARGET gRPC::grpc++)
  add_library(gRPC::grpc++ UNKNOWN IMPORTED)
  set_target_properties(gRPC::grpc++ PROPERTIES
    IMPORTED_LOCATION "${gRPC_CPP_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${gRPC_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${gRPC_LIBRARY};${gRPC_GPR_LIBRARY}")
endif()
if(gRPC_FOUND AND gRPC_CPP_PLUGIN AND NOT TARGET gRPC::grpc_cpp_plugin)
  add_executable(gRPC::grpc_cpp_plugin IMPORTED)
  set_target_properties(gRPC::grpc_cpp_plugin PROPERTIES IMPORTED_LOCATION "${gRPC_CPP_PLUGIN}")
endif()
