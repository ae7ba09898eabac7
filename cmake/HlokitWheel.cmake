# SPDX-License-Identifier: Apache-2.0
# hlokit_wheel(TOOL...): what a Python wheel contains, as the install component `wheel`, relative to where Python looks for
# packages: pyproject.toml builds and installs it. The target hlokit_wheel builds it all. `auditwheel repair` adds the
# libraries of the system that it needs (tools/package wheel).
#
#   hlokit/             the package, its extension module, and the libraries that are loaded at run time
#   hlokit/bin/         the tools
#   jax_plugins/hlokit  where JAX looks for plugins
function(hlokit_wheel)
  if(NOT TARGET hlokit_python)
    message(FATAL_ERROR "a wheel has the Python package, which is not built: see the messages above")
  endif()
  set(libraries "")
  foreach(library IN ITEMS hlokit_messages hlokit_pjrt hlokit_onednn hlokit_llvm hlokit_stores)
    if(TARGET ${library})
      list(APPEND libraries ${library})
    endif()
  endforeach()
  add_custom_target(hlokit_wheel)
  add_dependencies(hlokit_wheel hlokit_python ${libraries} ${ARGN})
  set_target_properties(hlokit_python ${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
  set_target_properties(${ARGN} PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS hlokit_python ${libraries} LIBRARY DESTINATION hlokit COMPONENT wheel)
  install(TARGETS ${ARGN} RUNTIME DESTINATION hlokit/bin COMPONENT wheel)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/hlokit/" DESTINATION hlokit COMPONENT wheel
    FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "*.h" PATTERN "*.cc" PATTERN "METADATA"
    PATTERN "top_level.txt")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/jax_plugins/" DESTINATION jax_plugins COMPONENT wheel
    FILES_MATCHING PATTERN "*.py")
  # The pages that notebooks show; empty where they cannot be bundled.
  install(CODE "
    foreach(page IN ITEMS report view)
      set(document \"${PROJECT_BINARY_DIR}/generated/\${page}.html\")
      if(EXISTS \"\${document}\")
        file(SIZE \"\${document}\" size)
        if(size GREATER 0)
          file(INSTALL \"\${document}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/hlokit\")
        endif()
      endif()
    endforeach()" COMPONENT wheel)
  # Programs of the environment, which start those of the package.
  foreach(tool IN LISTS ARGN)
    configure_file("${PROJECT_SOURCE_DIR}/packaging/wheel/tool.py.in" "${PROJECT_BINARY_DIR}/scripts/${tool}" @ONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    install(PROGRAMS "${PROJECT_BINARY_DIR}/scripts/${tool}" DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
  endforeach()
endfunction()
