/* banned.h - functions this code base does not use; included in every C file by the build.
 *
 * Each has a safer counterpart: snprintf or qf_strbuf, qf_parse_*, gmtime_r, qf_prng. */
#ifndef BASE_PURE_BANNED_H
#define BASE_PURE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gmtime localtime rand srand
#undef alloca
#pragma GCC poison alloca

#endif
