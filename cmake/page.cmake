# page.cmake - the page of web/, as a C file for the API.

# pf_page(OUT): set OUT to a generated source file with the page; without node, with none.
function(pf_page out)
  set(folder ${CMAKE_BINARY_DIR}/web)
  find_program(PROMFABRIC_NODE node)
  find_program(PROMFABRIC_NPM npm)
  if(NOT PROMFABRIC_NODE OR NOT PROMFABRIC_NPM)
    message(WARNING "no node or no npm: the API is built without its page (scripts/setup installs them)")
    file(CONFIGURE OUTPUT ${folder}/no_assets.c CONTENT [[
/* no_assets.c - a build without the page. */
#include "queryapi/http/assets.h"

const struct qa_asset qa_assets[1] = { { 0 } };
const size_t qa_asset_count = 0;
]])
    set(${out} ${folder}/no_assets.c PARENT_SCOPE)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  add_custom_command(OUTPUT ${folder}/assets.c
    COMMAND ${CMAKE_SOURCE_DIR}/web/build ${folder}
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/web/build ${CMAKE_SOURCE_DIR}/web/build.mjs
      ${CMAKE_SOURCE_DIR}/web/package.json ${CMAKE_SOURCE_DIR}/web/package-lock.json
      ${CMAKE_SOURCE_DIR}/scripts/lib/page.sh
    COMMENT "Building the page" VERBATIM)
  set(${out} ${folder}/assets.c PARENT_SCOPE)
endfunction()
