/* arrow_glib.h - the headers of Arrow GLib, which all files here include through this one.
 *
 * alloca is banned (base/pure/banned.h), and so GLib's macros around it cannot be compiled: the
 * include guard of their header is set beforehand. */
#ifndef SEGMENTS_PARQUET_ARROW_GLIB_H
#define SEGMENTS_PARQUET_ARROW_GLIB_H

#ifndef __cplusplus
#define __G_ALLOCA_H__
#endif

#include <gio/gio.h>
#include <parquet-glib/parquet-glib.h>

#endif
