/* beneath.c - open what lies below a folder, following no symbolic link on the way. */
#include "segments/store/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* openat(), and @folder is closed unless it is @root. */
static int step(int root, int folder, const char *part, int flags)
{
    int next = openat(folder, part, flags | O_NOFOLLOW | O_CLOEXEC), error = errno;

    if (folder != root)
        (void)close(folder);
    errno = error;
    return next;
}

int sg_store_open_beneath(int root, const char *path, int flags)
{
    int folder = root;
    const char *slash;
    char part[NAME_MAX + 1];

    while ((slash = strchr(path, '/')) != NULL && slash[1]) {
        size_t len = (size_t)(slash - path);

        if (len > NAME_MAX) {
            if (folder != root)
                (void)close(folder);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, len);
        part[len] = '\0';
        folder = step(root, folder, part, O_PATH | O_DIRECTORY);
        if (folder < 0)
            return -1;
        path = slash + 1;
    }
    if (!slash)
        return step(root, folder, *path ? path : ".", flags);
    /* "folder/": a slash at the end would follow a link after all */
    if ((size_t)(slash - path) > NAME_MAX) {
        if (folder != root)
            (void)close(folder);
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, path, (size_t)(slash - path));
    part[slash - path] = '\0';
    return step(root, folder, part, flags);
}
