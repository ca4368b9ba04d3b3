# Hardening of release builds, for gcc and clang. The test `hardening` checks the result in the built
# files, the test `fortify` checks that an overflow ends the process.
# SPDX-License-Identifier: Apache-2.0
include(CheckCSourceCompiles)

# Level 3 also checks buffers whose size is known at run time only. Where the compiler or the C
# library lacks it, glibc lowers the level by itself, with a warning in each file: hence the probe.
set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("
    #include <string.h>
    #if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 3
    #error level 3 is not supported
    #endif
    int main(void) { return 0; }" EW_HAS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(EW_FORTIFY_LEVEL 2)
if(EW_HAS_FORTIFY_3)
    set(EW_FORTIFY_LEVEL 3)
endif()
# -U first: some distributions define it in the compiler, and a second definition would warn.
add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${EW_FORTIFY_LEVEL})

ew_flag(-fstack-protector-strong)
ew_flag(-fstack-clash-protection)
ew_flag(-fcf-protection) # x86-64: CET
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    ew_flag(-mbranch-protection=standard) # BTI and PAC
endif()
ew_link_flag(-Wl,-z,relro)
ew_link_flag(-Wl,-z,now)
ew_link_flag(-Wl,-z,noexecstack)

# Counts the CET marks (IBT) and the object files of an object, a library archive or a program.
function(ew_count_cet_marks file ret_marks ret_objects)
    execute_process(COMMAND ${CMAKE_READELF} -n ${file} OUTPUT_VARIABLE notes ERROR_QUIET)
    string(REGEX MATCHALL "x86 feature: [^\n]*IBT" marks "${notes}")
    string(REGEX MATCHALL "(^|\n)File: " objects "${notes}")
    list(LENGTH marks n_marks)
    list(LENGTH objects n_objects)
    set(${ret_marks} ${n_marks} PARENT_SCOPE)
    set(${ret_objects} ${n_objects} PARENT_SCOPE)
endfunction()

# The linker marks a program for CET only if every object in it has the mark. EW_CET_RUNTIME: the
# start files of the C library have it (those of Debian 12 do not).
set(EW_CET_RUNTIME OFF)
if(CMAKE_READELF AND EW_HAS_fcf_protection)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=Scrt1.o
        OUTPUT_VARIABLE ew_start_file OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    ew_count_cet_marks("${ew_start_file}" ew_start_marks ew_start_objects)
    if(ew_start_marks)
        set(EW_CET_RUNTIME ON)
    endif()
endif()
