# Man pages, made at build time from the headers and from what the program says of itself (tools/make-docs): build/NAME/man.
# SPDX-License-Identifier: Apache-2.0
option(EW_MAN_GZIP "compress the man pages, as packages want them" OFF)
set(EW_MAN_DIR "")
if(EW_PYTHON AND TARGET everywire_bin AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(EW_MAN_DIR ${PROJECT_BINARY_DIR}/man)
    set(ew_man_zip "")
    if(EW_MAN_GZIP)
        set(ew_man_zip --gzip)
    endif()
    file(GLOB ew_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/everywire/*.h)
    add_custom_command(
        OUTPUT ${PROJECT_BINARY_DIR}/man.ok
        COMMAND ${EW_PYTHON} ${PROJECT_SOURCE_DIR}/tools/make-docs man --out ${EW_MAN_DIR} --program $<TARGET_FILE:everywire_bin> ${ew_man_zip}
        COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/man.ok
        DEPENDS ${ew_public_headers} ${PROJECT_SOURCE_DIR}/tools/make-docs everywire_bin
        COMMENT "Making the man pages"
        VERBATIM)
    add_custom_target(ew_man ALL DEPENDS ${PROJECT_BINARY_DIR}/man.ok)
else()
    message(STATUS "man pages left out: they need python3, and a program that runs on this machine")
endif()
