# SPDX-License-Identifier: Apache-2.0
# Installation of further files: the pkg-config file, completions, manual pages, documents, and, with HLOKIT_PACKAGING,
# the other needs of packages: see tools/package, which builds them.
#
# Four components: tools, modules (those of the tools that need large libraries, so that these are not required), dev
# (headers, libraries and their configuration) and doc.

option(HLOKIT_PACKAGING "Build for packages: hardened, with manual pages; cpack makes .deb files of it" OFF)
set(HLOKIT_CONTACT "hlokit maintainers <maintainers@users.noreply.hlokit.dev>" CACHE STRING "Maintainer in packages")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
# Independent of the builder's umask.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

if(HLOKIT_PACKAGING)
  add_compile_options(-fstack-protector-strong -D_FORTIFY_SOURCE=2 "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

# hlokit_pkg_config(): hlokit.pc, which requires the dependencies of the libraries.
function(hlokit_pkg_config)
  set(requires "")
  get_property(rooms GLOBAL PROPERTY HLOKIT_ROOMS)
  foreach(room IN LISTS rooms)
    string(PREPEND libs " -lhlokit_${room}")  # each before what it uses
    get_target_property(libraries hlokit_${room} LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
      string(REGEX REPLACE "^\\$<(LINK_ONLY|INSTALL_INTERFACE):(.*)>$" "\\2" library "${library}")
      if(library MATCHES "^(hlokit::|\\$<BUILD_INTERFACE:)")
        continue()
      elseif(library MATCHES "^absl::(.*)$")
        list(APPEND requires "absl_${CMAKE_MATCH_1}")
      elseif(library STREQUAL "xxhash::xxhash")
        list(APPEND requires libxxhash)
      elseif(library STREQUAL "ZLIB::ZLIB")
        list(APPEND requires zlib)
      elseif(library STREQUAL "pugixml::pugixml")
        list(APPEND requires pugixml)
      elseif(library STREQUAL "protobuf::libprotobuf")
        list(APPEND requires protobuf)
      elseif(library STREQUAL "gRPC::grpc++")
        list(APPEND requires grpc++)
      else()
        message(FATAL_ERROR "hlokit_pkg_config: which pkg-config module is ${library}?")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES requires)
  string(STRIP "${libs}" libs)
  set(HLOKIT_PC_REQUIRES ${requires} PARENT_SCOPE)
  list(JOIN requires " " requires)
  # Relative to the location of the file, so that the installed tree is relocatable.
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file("${PROJECT_SOURCE_DIR}/packaging/hlokit.pc.in" "${PROJECT_BINARY_DIR}/hlokit.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/hlokit.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
endfunction()

# Completion scripts for each tool, in build/NAME/completions/{bash,zsh,fish}.
function(hlokit_completions)
  set(tools ${ARGN})
  set(templates "${PROJECT_SOURCE_DIR}/packaging/completions")
  set(folder "${PROJECT_BINARY_DIR}/completions")
  set(zsh_folder "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  if(HLOKIT_PACKAGING)
    set(zsh_folder "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions")  # Debian's place for packages
  endif()
  foreach(tool IN LISTS tools)
    configure_file("${templates}/tool.bash.in" "${folder}/bash/${tool}" @ONLY)
    configure_file("${templates}/tool.fish.in" "${folder}/fish/${tool}.fish" @ONLY)
  endforeach()
  list(JOIN tools " " tools)
  configure_file("${templates}/_hlokit.in" "${folder}/zsh/_hlokit" @ONLY)
  install(DIRECTORY "${folder}/bash/" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT tools)
  install(DIRECTORY "${folder}/fish/" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT tools)
  install(FILES "${folder}/zsh/_hlokit" DESTINATION "${zsh_folder}" COMPONENT tools)
endfunction()

# The target hlokit_man builds a manual page of each tool and each of its subcommands, in build/NAME/man.
function(hlokit_man_pages)
  set(script "${PROJECT_SOURCE_DIR}/cmake/MakeManPages.cmake")
  find_program(HLOKIT_HELP2MAN help2man)
  if(HLOKIT_PACKAGING AND NOT HLOKIT_HELP2MAN)
    message(FATAL_ERROR "Packages have manual pages, which help2man makes, and it is not installed: "
      "tools/install-deps package installs it.")
  endif()
  if(HLOKIT_HELP2MAN)
    set(stamp "${PROJECT_BINARY_DIR}/man/made")
    list(JOIN ARGN "," tools)
    add_custom_command(OUTPUT "${stamp}"
      COMMAND "${CMAKE_COMMAND}" -D "help2man=${HLOKIT_HELP2MAN}" -D "bin=${PROJECT_BINARY_DIR}/bin" -D "tools=${tools}"
        -D "version=${PROJECT_VERSION}" -D "output=${PROJECT_BINARY_DIR}/man" -P "${script}"
      DEPENDS ${ARGN} "${script}" COMMENT "Manual pages" VERBATIM)
    add_custom_target(hlokit_man DEPENDS "${stamp}")
  endif()
  install(DIRECTORY "${PROJECT_BINARY_DIR}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools
    FILES_MATCHING PATTERN "*.1.gz")
endfunction()

function(hlokit_documents)
  file(GLOB texts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/*.md")
  install(FILES ${texts} DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT doc)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT doc)
endfunction()

# Requires: called after all targets are defined.
function(hlokit_install_extras)
  get_property(targets DIRECTORY "${PROJECT_SOURCE_DIR}/tools" PROPERTY BUILDSYSTEM_TARGETS)
  set(tools "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND tools ${target})
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY HLOKIT_TOOLS ${tools})
  hlokit_pkg_config()
  hlokit_completions(${tools})
  hlokit_man_pages(${tools})
  hlokit_documents()
  if(HLOKIT_PACKAGING)
    include(HlokitDebian)
    include(HlokitStatic)
    hlokit_static_tools(${tools})
    hlokit_debian_packages()
    # Everything in the packages.
    add_custom_target(hlokit_packages)
    add_dependencies(hlokit_packages hlokit_tools hlokit_man hlokit_static_tools)
  endif()
endfunction()
