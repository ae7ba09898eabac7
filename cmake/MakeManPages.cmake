# SPDX-License-Identifier: Apache-2.0
# Manual pages of tools and their subcommands, generated from --help:
#   cmake -D help2man=PROGRAM -D bin=DIR -D tools=NAME,... -D version=0.1.0 -D output=DIR -P MakeManPages.cmake
# Writes output/NAME.1.gz and output/NAME-COMMAND.1.gz, and the empty file output/made.

file(REMOVE_RECURSE "${output}")
file(MAKE_DIRECTORY "${output}")

# The first sentence of a help text, as the NAME line.
function(summary_of text result)
  string(REGEX REPLACE "\n\n.*" "" line "${text}")
  string(REGEX REPLACE "[ \n]+" " " line "${line}")
  string(REGEX REPLACE "[.:] .*$|[.]$" "" line "${line}")
  string(REGEX REPLACE " *\\(docs/[^)]*\\)" "" line "${line}")
  string(SUBSTRING "${line}" 0 1 first)
  string(SUBSTRING "${line}" 1 -1 rest)
  string(TOLOWER "${first}" first)
  set(${result} "${first}${rest}" PARENT_SCOPE)
endfunction()

# write_page(NAME SEE COMMAND...): writes the page NAME(1) of a command, with SEE ALSO entries.
function(write_page name see)
  execute_process(COMMAND ${ARGN} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  summary_of("${help}" summary)
  file(WRITE "${output}/include" "[NAME]\n${name} \\- ${summary}\n\n[SEE ALSO]\n${see}\n.PP\n"
    "The documents of hlokit are in /usr/share/doc/hlokit where the package hlokit-doc is installed.\n")
  string(JOIN " " command ${ARGN})
  execute_process(COMMAND "${help2man}" --no-info --section=1 "--version-string=${version}" "--include=${output}/include"
    "${command}" OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  # help2man supports programs, not subcommands, and dates without a day. Names of flags must not be hyphenated.
  string(TIMESTAMP date "%Y-%m-%d" UTC)
  string(TOUPPER "${name}" title)
  string(REGEX REPLACE "\n[.]TH [^\n]*" "\n.TH ${title} 1 ${date} \"hlokit ${version}\" hlokit\n.nh\n.ad l" page "${page}")
  file(WRITE "${output}/${name}.1" "${page}")
  execute_process(COMMAND gzip -9nf "${output}/${name}.1" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

string(REPLACE "," ";" tools "${tools}")
foreach(tool IN LISTS tools)
  # Completions after the name, of which subcommands are words: lines that are neither flags nor directives.
  execute_process(COMMAND "${bin}/${tool}" --complete "" OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(^|\n)[a-z][a-z-]*\t" lines "${lines}")
  string(REGEX REPLACE "[\n\t]" "" commands "${lines}")
  set(others ${tools})
  list(REMOVE_ITEM others ${tool})
  set(see "")
  foreach(command IN LISTS commands)
    list(APPEND see ".BR ${tool}-${command} (1)")
  endforeach()
  foreach(other IN LISTS others)
    list(APPEND see ".BR ${other} (1)")
  endforeach()
  string(JOIN ",\n" see ${see})
  write_page(${tool} "${see}" "${bin}/${tool}")
  foreach(command IN LISTS commands)
    write_page(${tool}-${command} ".BR ${tool} (1)" "${bin}/${tool}" ${command})
  endforeach()
endforeach()
file(REMOVE "${output}/include")
file(TOUCH "${output}/made")
