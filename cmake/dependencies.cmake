# dependencies.cmake - the libraries the project stands on; scripts/setup installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# A private Arrow GLib build of scripts/setup, if there is one.
if(NOT "$ENV{PROMFABRIC_CACHE}" STREQUAL "")
  set(pf_cache $ENV{PROMFABRIC_CACHE})
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(pf_cache $ENV{XDG_CACHE_HOME}/promfabric)
else()
  set(pf_cache $ENV{HOME}/.cache/promfabric)
endif()
if(EXISTS ${pf_cache}/arrow-glib/.complete)
  set(ENV{PKG_CONFIG_PATH} "${pf_cache}/arrow-glib/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  set(CMAKE_BUILD_RPATH ${pf_cache}/arrow-glib/lib)
  set(CMAKE_INSTALL_RPATH ${pf_cache}/arrow-glib/lib)
endif()

pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(PARQUET REQUIRED IMPORTED_TARGET parquet-glib arrow-glib gio-2.0)

# cowsql/raft of scripts/setup, linked statically: of the archive only the pure core is used.
file(GLOB raft_archive ${pf_cache}/raft/usr/lib/*/libraft.a)
if(NOT raft_archive)
  message(FATAL_ERROR "no libraft.a in ${pf_cache}/raft: run scripts/setup")
endif()
add_library(raft STATIC IMPORTED)
set_target_properties(raft PROPERTIES IMPORTED_LOCATION ${raft_archive}
  INTERFACE_INCLUDE_DIRECTORIES ${pf_cache}/raft/usr/include)
