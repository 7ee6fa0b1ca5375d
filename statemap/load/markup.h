/* markup.h - GLib's headers, for its parser of XML.
 *
 * alloca is banned (base/pure/banned.h), and so GLib's macros around it cannot be compiled: the header that defines them is
 * taken as read. */
#ifndef STATEMAP_LOAD_MARKUP_H
#define STATEMAP_LOAD_MARKUP_H

#define __G_ALLOCA_H__
#include <glib.h>

#endif
