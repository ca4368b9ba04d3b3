# ew_sources(a.c b.c ...), called by a module's CMakeLists.txt: adds these files to the module's object library. A module is a
# folder of src/ (or of src/wire/ or src/compat/). All modules but cli become the library. Paths are relative to the module.
# SPDX-License-Identifier: Apache-2.0

# ew_small_sources(a.c ...), likewise: files that run at start or for output, not for each call. A release optimises them for size.
function(ew_small_sources)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
    ew_sources(${ARGN})
endfunction()

function(ew_sources)
    file(RELATIVE_PATH module ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
    string(REPLACE "/" "_" target "ew_module_${module}")
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    if(TARGET ${target})
        target_sources(${target} PRIVATE ${sources})
        return()
    endif()
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_compile_options(${target} PRIVATE -Wmissing-prototypes ${EW_LTO_FLAGS})
    target_link_libraries(${target} PRIVATE ew_strict)
    # Only a module that may include a foreign header gets its folder.
    if(module STREQUAL "frame")
        target_link_libraries(${target} PRIVATE ew_llhttp ew_wslay)
    elseif(module STREQUAL "io")
        target_link_libraries(${target} PRIVATE ew_uv ew_openssl)
    elseif(module STREQUAL "store")
        target_link_libraries(${target} PRIVATE ew_sqlite ew_hiredis)
    elseif(module STREQUAL "config")
        target_link_libraries(${target} PRIVATE ew_yaml)
    endif()
    if(module STREQUAL "cli")
        set_property(GLOBAL PROPERTY EW_CLI_TARGET ${target})
    else()
        set_property(GLOBAL APPEND PROPERTY EW_MODULE_TARGETS ${target})
    endif()
endfunction()
