/* assets.h - the files of the page, in the executable. web/build.mjs makes the table. */
#ifndef QUERYAPI_HTTP_ASSETS_H
#define QUERYAPI_HTTP_ASSETS_H

#include <stddef.h>

struct qa_asset {
    const char
        *path; /* below /assets/; all but index.html have a hash of their bytes in their name,
                         or never change */
    const char *content_type;
    const char *etag; /* with its quotes */
    const char *bytes, *bytes_end;
    const char *gzip, *gzip_end; /* the same, compressed */
    const char *brotli, *brotli_end;
};

/* None if the program was built without node. */
extern const struct qa_asset qa_assets[];
extern const size_t qa_asset_count;

#endif
