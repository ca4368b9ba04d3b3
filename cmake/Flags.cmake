# Compiler and linker flags. Two sorts: what all C of this build gets (language, sanitizers, hardening), and the interface
# target ew_strict, which adds the warnings and which only our own code links: foreign sources (llhttp) are built without it.
# SPDX-License-Identifier: Apache-2.0
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)

# -O2 and not CMake's -O3: smaller, and not slower where it was measured.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")

# Adds a flag for all C code if the compiler knows it.
function(ew_flag flag)
    string(MAKE_C_IDENTIFIER "EW_HAS${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
        add_compile_options(${flag})
    endif()
endfunction()

function(ew_link_flag flag)
    string(MAKE_C_IDENTIFIER "EW_LINKS${flag}" has)
    check_linker_flag(C ${flag} ${has})
    if(${has})
        add_link_options(${flag})
    endif()
endfunction()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-ffunction-sections -fdata-sections)
# Calls between our own exported functions need not be replaceable from outside; clang behaves so by default.
ew_flag(-fno-semantic-interposition)
# gcc clears structs of some hundred bytes with "rep stos", whose start alone costs more than the stores it saves.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    ew_flag(-mmemset-strategy=vector_loop:2048:noalign,libcall:-1:noalign)
endif()
ew_link_flag(-Wl,--gc-sections)
ew_link_flag(-Wl,--as-needed)

if(EW_SANITIZE)
    add_compile_options(-fsanitize=${EW_SANITIZE} -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${EW_SANITIZE})
    if(EW_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
endif()
if(EW_DEBUG_ARENA)
    add_compile_definitions(EW_DEBUG_ARENA)
endif()
if(EW_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "EW_FUZZ needs clang: use `cmake --preset fuzz` or set CC=clang")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_compile_definitions(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
endif()

set(EW_HARDENED OFF)
if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT EW_SANITIZE AND NOT EW_FUZZ)
    set(EW_HARDENED ON)
    include(Hardening)
endif()

# A chunk of a stream passes through small functions of many files. The objects hold ordinary code beside that for the linker, so that the static
# library can be without the latter: it is of use to this very version of this compiler only (src/CMakeLists.txt).
set(EW_LTO_FLAGS "")
if(EW_LTO AND CMAKE_BUILD_TYPE MATCHES "^Rel" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_OBJCOPY AND NOT EW_SANITIZE AND NOT EW_FUZZ)
    set(EW_LTO_FLAGS -flto=auto -ffat-lto-objects)
endif()

add_library(ew_strict INTERFACE)
target_compile_options(ew_strict INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wvla)
if(EW_WERROR)
    target_compile_options(ew_strict INTERFACE -Werror)
endif()
