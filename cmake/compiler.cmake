# compiler.cmake - warnings, sanitizers and optimisation for every target of the project.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(pf_flags INTERFACE)
target_compile_options(pf_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Werror -Wshadow -Wvla -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:C>:-Wpedantic -Wconversion -Wswitch-enum -Wmissing-prototypes
    -Wno-sign-conversion>
  # Messages may be cut at the end of their buffer: that is documented where it happens.
  # Results are written only on success, which gcc's flow analysis does not see through.
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation -Wno-maybe-uninitialized>
  # Long texts in a list are written over several lines.
  $<$<C_COMPILER_ID:Clang>:-Wno-string-concatenation>
  $<$<COMPILE_LANGUAGE:C>:-include ${CMAKE_SOURCE_DIR}/base/pure/banned.h>
  # Prometheus's answers are the reference bit for bit: no fused multiply-add behind our back.
  -ffp-contract=off)
target_include_directories(pf_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(pf_flags INTERFACE _GNU_SOURCE PROMFABRIC_VERSION="${PROJECT_VERSION}")
# Asserts guard invariants and stay on in release builds.
foreach(lang C CXX)
  string(REPLACE "-DNDEBUG" "" CMAKE_${lang}_FLAGS_RELEASE "${CMAKE_${lang}_FLAGS_RELEASE}")
  string(REPLACE "-O3" "-O2" CMAKE_${lang}_FLAGS_RELEASE "${CMAKE_${lang}_FLAGS_RELEASE} -g")
endforeach()

# What ships is hardened, and tests/checks/hardening reads the binary. (Sanitizers see more and bring
# their own interceptors; coverage is not optimised, which fortification needs.)
add_library(pf_hardened INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PROMFABRIC_SANITIZE AND NOT PROMFABRIC_COVERAGE)
  target_compile_options(pf_hardened INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
    -fstack-protector-strong -fstack-clash-protection)
  target_link_options(pf_hardened INTERFACE -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()

if(PROMFABRIC_SANITIZE STREQUAL "fuzzer")
  target_compile_options(pf_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all)
  target_link_options(pf_flags INTERFACE -fsanitize=address,undefined)
elseif(PROMFABRIC_SANITIZE)
  target_compile_options(pf_flags INTERFACE -fsanitize=${PROMFABRIC_SANITIZE}
    -fno-sanitize-recover=all)
  target_link_options(pf_flags INTERFACE -fsanitize=${PROMFABRIC_SANITIZE})
endif()
if(PROMFABRIC_COVERAGE)
  target_compile_options(pf_flags INTERFACE --coverage -O0)
  target_link_options(pf_flags INTERFACE --coverage)
endif()
