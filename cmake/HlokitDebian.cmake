# SPDX-License-Identifier: Apache-2.0
# hlokit_debian_packages(): configures cpack to build hlokit, hlokit-modules, libhlokit-dev and hlokit-doc according to
# Debian policy.
function(hlokit_debian_packages)
  set(folder "${PROJECT_BINARY_DIR}/debian")
  # The revision sorts before 1, the first revision of a package in Debian's own archive.
  set(revision 0hlokit1)
  set(version "${PROJECT_VERSION}-${revision}")
  # RFC 5322, of the commit if SOURCE_DATE_EPOCH is set.
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(READ "${PROJECT_SOURCE_DIR}/NOTICE" notice)
  configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in" "${folder}/changelog.Debian" @ONLY)
  configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/copyright.in" "${folder}/copyright" @ONLY)
  execute_process(COMMAND gzip -9nkf "${folder}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)
  foreach(pair IN ITEMS tools=hlokit modules=hlokit-modules dev=libhlokit-dev doc=hlokit-doc)
    string(REGEX MATCH "^(.*)=(.*)$" pair "${pair}")
    install(FILES "${folder}/changelog.Debian.gz" "${folder}/copyright" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${CMAKE_MATCH_2}"
      COMPONENT ${CMAKE_MATCH_1})
  endforeach()

  set(CPACK_GENERATOR DEB)
  set(CPACK_VERBATIM_VARIABLES ON)
  set(CPACK_PACKAGE_CONTACT "${HLOKIT_CONTACT}")
  set(CPACK_PACKAGE_VENDOR hlokit)
  # The default text, which counts as none: CPack would prepend any other to the packages' own.
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENTS_ALL tools modules dev doc)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME hlokit)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
  # Loaded by the first use: libraries of remote stores, modules of the fast engine and of --mpi.
  set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "hlokit-modules (= ${version}), libcurl4, libhiredis0.14")
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "hlokit-doc, graphviz")
  set(CPACK_DEBIAN_TOOLS_DESCRIPTION
    "tools for programs in XLA's HLO text
hlo-opt, hlo-inspect, hlo-view, hlo-diff, hlo-reduce, hlo-run, hlo-profile
and ir-dump read, print, show, check, transform, compare, hash and run programs
in the text form of XLA's HLO, as JAX, TensorFlow and PyTorch/XLA dump it,
estimate their time on TPUs, and trace models as PyTorch/XLA does;
hlo-lsp-server serves editors. They need neither XLA nor an accelerator.")

  set(CPACK_DEBIAN_MODULES_PACKAGE_NAME hlokit-modules)
  set(CPACK_DEBIAN_MODULES_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_MODULES_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_MODULES_PACKAGE_DEPENDS "hlokit (= ${version})")
  set(CPACK_DEBIAN_MODULES_DESCRIPTION
    "tools for programs in XLA's HLO text - modules
Modules that hlokit's tools load when they are asked for: of the fast engine,
with products of oneDNN and loops compiled by LLVM, and of runs on several
hosts with Open MPI.")

  set(CPACK_DEBIAN_DEV_PACKAGE_NAME libhlokit-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libabsl-dev, libprotobuf-dev, libgrpc++-dev, libpugixml-dev, libxxhash-dev, zlib1g-dev")
  set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "hlokit-doc")
  set(CPACK_DEBIAN_DEV_DESCRIPTION
    "library for programs in XLA's HLO text - development files
Headers and static libraries of hlokit's rooms: the intermediate
representation, the parser, files, the passes, the interpreter, the runtime,
comparisons, the simulator and the tracer; with what CMake's find_package and
pkg-config need to find them.")

  set(CPACK_DEBIAN_DOC_PACKAGE_NAME hlokit-doc)
  set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
  set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_DOC_DESCRIPTION
    "tools for programs in XLA's HLO text - documentation
Guides and references of hlokit: its tools, passes, operations, the
interpreter, the simulated TPU, the tracer, and examples.")
  include(CPack)
endfunction()
