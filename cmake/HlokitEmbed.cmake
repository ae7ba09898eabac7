# SPDX-License-Identifier: Apache-2.0
# Generated sources of libraries.
#
# hlokit_embed_machines(TARGET DIR): compiles DIR/*.tpu into TARGET as hlokit::tpu::kBuiltinDeviceDescriptions, in order
# of name, so that tools need no file at run time.
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
  set(output "${PROJECT_BINARY_DIR}/generated/builtin_device_descriptions.cc")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
#include "passes/target/device_description.h"

namespace hlokit::tpu {

const BuiltinText kBuiltinDeviceDescriptions[] = {
@rows@};
const size_t kBuiltinDeviceDescriptionCount = @count@;

}  // namespace hlokit::tpu
]])
  target_sources(${target} PRIVATE "${output}")
endfunction()

# hlokit_table_headers(TARGET TABLE MACRO STEM): writes STEM_names.inc, the first column of TABLE as enumerators, and
# STEM_columns.inc, the table without descriptions. TABLE and STEM are relative to the project root. A file that
# includes only one of them is not recompiled when a description changes (the names: any other column).
function(hlokit_table_headers target table macro stem)
  set(folder "${PROJECT_BINARY_DIR}/generated/tables")
  set(script "${PROJECT_SOURCE_DIR}/cmake/TableHeaders.cmake")
  set(headers "${folder}/${stem}_names.inc" "${folder}/${stem}_columns.inc")
  list(GET headers 0 names)
  list(GET headers 1 columns)
  add_custom_command(OUTPUT ${headers}
    COMMAND "${CMAKE_COMMAND}" -D "table=${PROJECT_SOURCE_DIR}/${table}" -D "macro=${macro}" -D "names=${names}"
      -D "columns=${columns}" -P "${script}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${table}" "${script}" VERBATIM)
  target_sources(${target} PRIVATE ${headers})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}>)
  cmake_path(GET stem PARENT_PATH parent)
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hlokit/${parent}")
endfunction()

# hlokit_pass_list(TARGET FOLDER): writes FOLDER/core/pass_list.inc, the passes whose rows stand in the sources of FOLDER.
function(hlokit_pass_list target folder)
  set(list "${PROJECT_BINARY_DIR}/generated/tables/${folder}/core/pass_list.inc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/PassList.cmake")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  # Of the sources, so that the list is written anew when one goes.
  string(SHA1 names "${sources}")
  add_custom_command(OUTPUT "${list}"
    COMMAND "${CMAKE_COMMAND}" -D "sources=${names}" -D "folder=${PROJECT_SOURCE_DIR}/${folder}" -D "list=${list}" -P "${script}"
    DEPENDS ${sources} "${script}" VERBATIM)
  target_sources(${target} PRIVATE "${list}")
endfunction()

# hlokit_tensor_methods(TARGET): writes the methods of Tensor that the table of ops asks for, and compiles them into TARGET.
function(hlokit_tensor_methods target)
  add_executable(hlokit_write_tensor_methods EXCLUDE_FROM_ALL
    tracer/codegen/write_tensor_methods.cc tracer/graph/schema.cc tracer/graph/string_split.cc)
  target_compile_definitions(hlokit_write_tensor_methods PRIVATE HLOKIT_WITHOUT_TENSOR_METHODS)
  target_compile_options(hlokit_write_tensor_methods PRIVATE -O0)
  target_link_libraries(hlokit_write_tensor_methods PRIVATE hlokit_ir)
  set(folder "${PROJECT_BINARY_DIR}/generated/tables")
  set(declarations "${folder}/tracer/graph/tensor_methods.inc")
  set(definitions "${PROJECT_BINARY_DIR}/generated/tensor_methods.cc")
  file(MAKE_DIRECTORY "${folder}/tracer/graph")
  add_custom_command(OUTPUT "${declarations}" "${definitions}"
    COMMAND hlokit_write_tensor_methods "${declarations}" "${definitions}"
    DEPENDS hlokit_write_tensor_methods VERBATIM)
  target_sources(${target} PRIVATE "${declarations}" "${definitions}")
  install(FILES "${declarations}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hlokit/tracer/graph")
endfunction()

# hlokit_compile_protos(TARGET PUBLIC|PRIVATE FILE...): compiles .proto files, named from the project root, into TARGET.
# SCOPE is that of the include directory of the headers, which are "room/file.pb.h".
function(hlokit_compile_protos target scope)
  set(folder "${PROJECT_BINARY_DIR}/generated")
  set(messages ${target}_messages)
  if(NOT TARGET ${messages})
    add_library(${messages} OBJECT)
    target_include_directories(${messages} SYSTEM PRIVATE "${folder}")
    target_link_libraries(${messages} PRIVATE protobuf::libprotobuf)
    target_compile_features(${messages} PRIVATE cxx_std_20)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${messages}>)
    set_property(GLOBAL APPEND PROPERTY HLOKIT_MESSAGES ${messages})
  endif()
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "[.]proto$" "" stem "${file}")
    set(outputs "${folder}/${stem}.pb.cc" "${folder}/${stem}.pb.h")
    add_custom_command(OUTPUT ${outputs}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${folder} ${PROJECT_SOURCE_DIR}/${file}
      DEPENDS "${PROJECT_SOURCE_DIR}/${file}" VERBATIM)
    # Output of protoc is exempt from our warnings.
    set_source_files_properties("${folder}/${stem}.pb.cc" PROPERTIES COMPILE_OPTIONS -w)
    target_sources(${messages} PRIVATE ${outputs})
  endforeach()
  target_include_directories(${target} SYSTEM ${scope} "$<BUILD_INTERFACE:${folder}>")
  # The full library: gRPC depends on it, and two copies in one process conflict.
  target_link_libraries(${target} ${scope} protobuf::libprotobuf)
endfunction()

# $<LINK_LIBRARY:hlokit_kept,LIBRARY>: links the shared library even where --as-needed would drop it, since the objects
# that need it are in archives that follow.
set(CMAKE_LINK_LIBRARY_USING_hlokit_kept_SUPPORTED TRUE)
set(CMAKE_LINK_LIBRARY_USING_hlokit_kept
  "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>" "LINKER:--pop-state")

# hlokit_messages(): builds the messages of all libraries as a shared one. A process has one description of a message,
# and two modules with their own would end it, so modules that programs load use hlokit_link_messages.
function(hlokit_messages)
  get_property(targets GLOBAL PROPERTY HLOKIT_MESSAGES)
  set(objects "")
  foreach(target IN LISTS targets)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  add_library(hlokit_messages SHARED ${objects})
  set_target_properties(hlokit_messages PROPERTIES
    LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hlokit")
  target_link_libraries(hlokit_messages PRIVATE protobuf::libprotobuf)
  install(TARGETS hlokit_messages DESTINATION lib/hlokit COMPONENT tools)
endfunction()

# hlokit_link_messages(TARGET): links the shared messages. Before the rooms, whose archives hold the same messages.
function(hlokit_link_messages target)
  get_target_property(rooms ${target} LINK_LIBRARIES)
  list(FILTER rooms INCLUDE REGEX "^hlokit")
  if(rooms)
    message(FATAL_ERROR "${target}: the shared messages come before ${rooms}")
  endif()
  target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:hlokit_kept,hlokit_messages>")
endfunction()

# hlokit_compile_services(TARGET FILE...): as hlokit_compile_protos, for .proto files with services, whose stubs are
# "room/file.grpc.pb.h".
function(hlokit_compile_services target)
  hlokit_compile_protos(${target} PRIVATE ${ARGN})
  set(folder "${PROJECT_BINARY_DIR}/generated")
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "[.]proto$" "" stem "${file}")
    set(outputs "${folder}/${stem}.grpc.pb.cc" "${folder}/${stem}.grpc.pb.h")
    add_custom_command(OUTPUT ${outputs}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --grpc_out=${folder}
        --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${PROJECT_SOURCE_DIR}/${file}
      DEPENDS "${PROJECT_SOURCE_DIR}/${file}" VERBATIM)
    set_source_files_properties("${folder}/${stem}.grpc.pb.cc" PROPERTIES COMPILE_OPTIONS -w)
    target_sources(${target} PRIVATE ${outputs})
  endforeach()
  hlokit_grpc_archives(archives others)
  if(archives)
    hlokit_abseil_archives(abseil)
  endif()
  hlokit_archives(grpc SHARED gRPC::grpc++ ARCHIVES ${archives} ${abseil} OTHERS ${others})
  target_link_libraries(${target} PRIVATE ${grpc})
  set(HLOKIT_GRPC ${grpc} PARENT_SCOPE)  # for programs that call gRPC themselves
endfunction()

# hlokit_web_pages(TARGET DIR): bundles the pages of DIR and compiles them into TARGET; see BuildWebPages.cmake. The target
# hlokit_web_documents makes their documents, generated/report.html and generated/view.html.
function(hlokit_web_pages target folder)
  set(generated "${PROJECT_BINARY_DIR}/generated")
  set(outputs "${generated}/report_page_text.cc" "${generated}/view_page_text.cc"
    "${generated}/layout_worker_text.cc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/BuildWebPages.cmake")
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${folder}/common/*" "${folder}/report/src/*" "${folder}/view/src/*")
  file(GLOB bundle CONFIGURE_DEPENDS "${folder}/bundle/*")
  list(APPEND inputs "${folder}/package.json" "${folder}/package-lock.json" "${folder}/build.mjs" "${PROJECT_SOURCE_DIR}/NOTICE" "${script}"
    ${bundle})
  # As part of the command, so that it runs again once they are installed.
  find_program(HLOKIT_NODE NAMES node nodejs)
  find_program(HLOKIT_NPM npm)
  set(documents "${generated}/report.html" "${generated}/view.html")
  add_custom_command(OUTPUT ${outputs} ${documents}
    COMMAND "${CMAKE_COMMAND}" -D "folder=${folder}" -D "work=${PROJECT_BINARY_DIR}/web-pages" -D "output=${generated}"
      -D "node=${HLOKIT_NODE}" -D "npm=${HLOKIT_NPM}" -P "${script}"
    DEPENDS ${inputs} COMMENT "Bundling the pages" VERBATIM)
  # Each alone, so that a tool has the page that it writes.
  set_source_files_properties(${outputs} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${outputs})
  add_custom_target(hlokit_web_documents DEPENDS ${documents})
endfunction()
