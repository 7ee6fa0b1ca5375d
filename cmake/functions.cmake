# functions.cmake - how libraries and tests are declared.

# pf_library(NAME [PURE] DIRS d... [LIBS l...] [INCLUDE i...]): a static library of all .c and .cc
# files of the given folders. PURE archives are held to the allow-list of tests/checks/purity.
define_property(GLOBAL PROPERTY PF_PURE_ARCHIVES)
function(pf_library name)
  cmake_parse_arguments(arg "PURE" "" "DIRS;LIBS;INCLUDE" ${ARGN})
  set(sources)
  foreach(dir ${arg_DIRS})
    file(GLOB found CONFIGURE_DEPENDS ${dir}/*.c ${dir}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC pf_flags ${arg_LIBS})
  target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:pf_hardened,INTERFACE_COMPILE_OPTIONS>)
  target_include_directories(${name} PUBLIC ${arg_INCLUDE})
  if(arg_PURE)
    set_property(GLOBAL APPEND PROPERTY PF_PURE_ARCHIVES $<TARGET_FILE:${name}>)
  endif()
endfunction()

# pf_test(NAME SOURCES s... [LIBS l...] [LABELS l...] [TIMEOUT seconds] [ARGS a...]): one test
# program over tests/lib. Labels decide where it runs: every test runs in the dev tree (ASan and
# UBSan); `thread` also under TSan; `release` also in the release tree; `slow` not with --quick.
function(pf_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE testlib ${arg_LIBS})
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# pf_fuzz(NAME SOURCES s... LIBS l...): a libFuzzer program, built only in the fuzz tree.
function(pf_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT PROMFABRIC_SANITIZE STREQUAL "fuzzer")
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE pf_flags ${arg_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
