# The layer check runs at every build that changed a source or header. A wrong include is like a compiler's warning: it breaks the
# build where warnings are errors (EW_WERROR: CI, debug, sanitizers), and is said elsewhere. `./dev lint` always fails on it.
# SPDX-License-Identifier: Apache-2.0
find_program(EW_PYTHON NAMES python3)
if(EW_PYTHON)
    file(GLOB_RECURSE ew_checked CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/include/*.h)
    set(ew_layers_warn --warn)
    if(EW_WERROR)
        set(ew_layers_warn "")
    endif()
    add_custom_command(
        OUTPUT ${PROJECT_BINARY_DIR}/layers.ok
        COMMAND ${EW_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check-layers ${ew_layers_warn} --stamp ${PROJECT_BINARY_DIR}/layers.ok
        DEPENDS ${ew_checked} ${PROJECT_SOURCE_DIR}/tools/check-layers ${PROJECT_SOURCE_DIR}/src/modules.txt
        COMMENT "Checking who includes whom"
        VERBATIM)
    add_custom_target(ew_layers DEPENDS ${PROJECT_BINARY_DIR}/layers.ok)
    add_dependencies(everywire_static ew_layers)
    add_dependencies(everywire ew_layers)
else()
    message(STATUS "python3 not found: the layer check is left out")
endif()
