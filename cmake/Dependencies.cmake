# What the library stands on, as ten targets:
#   ew_uv_shared  libuv as a shared library: for libeverywire.so
#   ew_uv         libuv inside: for our binary and the tests; the static library where there is one, else the shared one
#   ew_llhttp     llhttp's header, and its objects (EW_LLHTTP_OBJECTS) or its system library
#   ew_wslay      wslay's header and library
#   ew_sqlite_shared, ew_sqlite   SQLite, in the same two ways as libuv
#   ew_yaml_shared, ew_yaml       libyaml, likewise
#   ew_hiredis_shared, ew_hiredis hiredis, likewise
# SPDX-License-Identifier: Apache-2.0
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# A distribution wants them shared, so that a fix of a library reaches everything that uses it.
option(EW_STATIC_DEPENDENCIES "take libraries into the program where there is a static one" ON)
if(NOT EW_STATIC_DEPENDENCIES)
    foreach(name UV SQLITE YAML HIREDIS)
        set(EW_${name}_ARCHIVE "" CACHE FILEPATH "none: shared" FORCE)
    endforeach()
endif()

# Clears the cache variable that names an archive if linking it would cost the program its CET mark.
# The shared library is then linked instead.
function(ew_reject_unmarked_archive variable)
    if(NOT EW_CET_RUNTIME OR NOT ${variable})
        return()
    endif()
    ew_count_cet_marks("${${variable}}" marks objects)
    if(marks LESS objects)
        message(STATUS "${${variable}} lacks the CET mark: linking the shared library")
        set(${variable} "" CACHE FILEPATH "none: shared" FORCE)
    endif()
endfunction()

# ---- libuv ----
pkg_check_modules(EW_UV REQUIRED IMPORTED_TARGET libuv>=1.42)
add_library(ew_uv_shared INTERFACE)
target_link_libraries(ew_uv_shared INTERFACE PkgConfig::EW_UV)

# The static one makes the binary start faster (one library less to load) and run where libuv is not installed.
find_library(EW_UV_ARCHIVE NAMES libuv_a.a libuv.a HINTS ${EW_UV_LIBRARY_DIRS} ${EW_UV_LIBDIR})
ew_reject_unmarked_archive(EW_UV_ARCHIVE)
add_library(ew_uv INTERFACE)
if(EW_UV_ARCHIVE)
    target_include_directories(ew_uv SYSTEM INTERFACE ${EW_UV_INCLUDE_DIRS})
    target_link_libraries(ew_uv INTERFACE ${EW_UV_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS} rt)
else()
    target_link_libraries(ew_uv INTERFACE ew_uv_shared)
endif()

# ---- llhttp ----
# First choice: a system library. Debian 12 has none, but ships the C sources in node-llhttp.
add_library(ew_llhttp INTERFACE)
set(EW_LLHTTP_OBJECTS "")
set(EW_LLHTTP_PC "")
pkg_check_modules(EW_LLHTTP QUIET IMPORTED_TARGET libllhttp)
find_path(EW_LLHTTP_SOURCE_DIR llhttp.c PATHS /usr/share/llhttp /usr/local/share/llhttp NO_DEFAULT_PATH)
find_path(EW_LLHTTP_HEADER_DIR llhttp.h PATHS /usr/share/include/llhttp /usr/local/share/include/llhttp ${EW_LLHTTP_SOURCE_DIR}
          NO_DEFAULT_PATH)
if(EW_LLHTTP_FOUND)
    target_link_libraries(ew_llhttp INTERFACE PkgConfig::EW_LLHTTP)
    set(EW_LLHTTP_PC "libllhttp")
elseif(EW_LLHTTP_SOURCE_DIR AND EW_LLHTTP_HEADER_DIR)
    # Built without our warnings (ew_strict): it is generated code that is not ours to change, and -Wconversion floods on it.
    add_library(ew_llhttp_objects OBJECT
        ${EW_LLHTTP_SOURCE_DIR}/api.c ${EW_LLHTTP_SOURCE_DIR}/http.c ${EW_LLHTTP_SOURCE_DIR}/llhttp.c)
    target_include_directories(ew_llhttp_objects SYSTEM PRIVATE ${EW_LLHTTP_HEADER_DIR})
    target_compile_definitions(ew_llhttp_objects PRIVATE LLHTTP_STRICT_MODE=1)
    target_compile_options(ew_llhttp_objects PRIVATE -w)
    if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND EW_SANITIZE MATCHES "undefined")
        # It calls its span callbacks through a pointer of another type; newer clangs report every such call.
        target_compile_options(ew_llhttp_objects PRIVATE -fno-sanitize=function)
    endif()
    # The header must see the same mode as the sources.
    target_include_directories(ew_llhttp SYSTEM INTERFACE ${EW_LLHTTP_HEADER_DIR})
    target_compile_definitions(ew_llhttp INTERFACE LLHTTP_STRICT_MODE=1)
    set(EW_LLHTTP_OBJECTS $<TARGET_OBJECTS:ew_llhttp_objects>)
else()
    message(FATAL_ERROR "llhttp not found: install libllhttp-dev, or node-llhttp on Debian 12 (`./dev install` does)")
endif()

# ---- wslay ----
# Debian's package brings no pkg-config file (others do), so the header and the library are looked for as well.
add_library(ew_wslay INTERFACE)
set(EW_WSLAY_PC "")
set(EW_WSLAY_LIBS "")
pkg_check_modules(EW_WSLAY QUIET IMPORTED_TARGET libwslay)
if(EW_WSLAY_FOUND)
    target_link_libraries(ew_wslay INTERFACE PkgConfig::EW_WSLAY)
    set(EW_WSLAY_PC "libwslay")
else()
    find_path(EW_WSLAY_HEADER_DIR wslay/wslay.h)
    find_library(EW_WSLAY_LIBRARY NAMES wslay)
    if(NOT EW_WSLAY_HEADER_DIR OR NOT EW_WSLAY_LIBRARY)
        message(FATAL_ERROR "wslay not found: install libwslay-dev (`./dev install` does)")
    endif()
    target_include_directories(ew_wslay SYSTEM INTERFACE ${EW_WSLAY_HEADER_DIR})
    target_link_libraries(ew_wslay INTERFACE ${EW_WSLAY_LIBRARY})
    set(EW_WSLAY_LIBS "-lwslay")
endif()

# ---- OpenSSL ----
# Its headers only: the library is loaded when TLS is used for the first time (src/io/openssl.h says why).
pkg_check_modules(EW_OPENSSL REQUIRED IMPORTED_TARGET openssl>=3.0)
add_library(ew_openssl INTERFACE)
target_include_directories(ew_openssl SYSTEM INTERFACE ${EW_OPENSSL_INCLUDE_DIRS})
target_link_libraries(ew_openssl INTERFACE ${CMAKE_DL_LIBS})

# ---- SQLite ----
# 3.33 has what src/store asks for. The static library is taken for the reasons that hold for libuv's.
pkg_check_modules(EW_SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.33)
add_library(ew_sqlite_shared INTERFACE)
target_link_libraries(ew_sqlite_shared INTERFACE PkgConfig::EW_SQLITE)
find_library(EW_SQLITE_ARCHIVE NAMES libsqlite3.a HINTS ${EW_SQLITE_LIBRARY_DIRS} ${EW_SQLITE_LIBDIR})
ew_reject_unmarked_archive(EW_SQLITE_ARCHIVE)
add_library(ew_sqlite INTERFACE)
if(EW_SQLITE_ARCHIVE)
    target_include_directories(ew_sqlite SYSTEM INTERFACE ${EW_SQLITE_INCLUDE_DIRS})
    target_link_libraries(ew_sqlite INTERFACE ${EW_SQLITE_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS} m)
else()
    target_link_libraries(ew_sqlite INTERFACE ew_sqlite_shared)
endif()
# For the pkg-config file: by name, not as a requirement, because Debian's sqlite3.pc asks those who link statically for zlib, which
# only SQLite's shell uses and which its package does not bring.
string(REPLACE ";" " " EW_SQLITE_LIBS "${EW_SQLITE_LDFLAGS}")

# ---- libyaml ----
pkg_check_modules(EW_YAML REQUIRED IMPORTED_TARGET yaml-0.1>=0.2.1)
add_library(ew_yaml_shared INTERFACE)
target_link_libraries(ew_yaml_shared INTERFACE PkgConfig::EW_YAML)
find_library(EW_YAML_ARCHIVE NAMES libyaml.a HINTS ${EW_YAML_LIBRARY_DIRS} ${EW_YAML_LIBDIR})
ew_reject_unmarked_archive(EW_YAML_ARCHIVE)
add_library(ew_yaml INTERFACE)
if(EW_YAML_ARCHIVE)
    target_include_directories(ew_yaml SYSTEM INTERFACE ${EW_YAML_INCLUDE_DIRS})
    target_link_libraries(ew_yaml INTERFACE ${EW_YAML_ARCHIVE})
else()
    target_link_libraries(ew_yaml INTERFACE ew_yaml_shared)
endif()

# ---- hiredis ----
# Its pkg-config file leads into its own folder; we include <hiredis/hiredis.h>, from the folder above.
pkg_check_modules(EW_HIREDIS REQUIRED IMPORTED_TARGET hiredis>=0.14)
add_library(ew_hiredis_shared INTERFACE)
target_link_libraries(ew_hiredis_shared INTERFACE PkgConfig::EW_HIREDIS)
find_library(EW_HIREDIS_ARCHIVE NAMES libhiredis.a HINTS ${EW_HIREDIS_LIBRARY_DIRS} ${EW_HIREDIS_LIBDIR})
ew_reject_unmarked_archive(EW_HIREDIS_ARCHIVE)
add_library(ew_hiredis INTERFACE)
if(EW_HIREDIS_ARCHIVE)
    target_link_libraries(ew_hiredis INTERFACE ${EW_HIREDIS_ARCHIVE})
else()
    target_link_libraries(ew_hiredis INTERFACE ew_hiredis_shared)
endif()
