# find_package(sinter): the program sinter, and model files as libraries.
#
#   sinter_library(TARGET MODEL.net [INFERENCE] [STATIC] [OPTIONS OPTION...])
#
# adds a library whose header is TARGET.h and whose functions begin with TARGET_.
# It is built with the project, and again when the model file changes.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH sinter_prefix)
cmake_path(GET sinter_prefix PARENT_PATH sinter_prefix)
cmake_path(GET sinter_prefix PARENT_PATH sinter_prefix)
set(SINTER_EXECUTABLE ${sinter_prefix}/bin/sinter)
unset(sinter_prefix)
if(NOT EXISTS ${SINTER_EXECUTABLE})
  set(sinter_FOUND FALSE)
  set(sinter_NOT_FOUND_MESSAGE "there is no ${SINTER_EXECUTABLE}")
  return()
endif()

function(sinter_library target model)
  cmake_parse_arguments(PARSE_ARGV 2 given "INFERENCE;STATIC" "" "OPTIONS")
  if(given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sinter_library: ${given_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(ABSOLUTE_PATH model NORMALIZE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.sinter)
  set(base ${folder}/lib${target})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${base}.so ${base}.a ${base}.h ${folder}/${target}.h
    COMMAND ${SINTER_EXECUTABLE} build ${model} --library
            $<$<BOOL:${given_INFERENCE}>:--inference> ${given_OPTIONS} -o ${base}
    COMMAND ${CMAKE_COMMAND} -E copy ${base}.h ${folder}/${target}.h
    DEPENDS ${model} ${SINTER_EXECUTABLE} COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target}_files DEPENDS ${base}.so)
  if(given_STATIC)
    add_library(${target} STATIC IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${base}.a)
    target_link_libraries(${target} INTERFACE -fopenmp dnnl m dl)
  else()
    add_library(${target} SHARED IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${base}.so)
  endif()
  target_include_directories(${target} INTERFACE ${folder})
  add_dependencies(${target} ${target}_files)
endfunction()
